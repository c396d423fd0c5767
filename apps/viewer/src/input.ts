import type { State } from "./state.js";
import { panned, type View, zoomed } from "./view.js";

/** What pointers and keys ask for. */
export interface Wishes {
  show(view: View): void;
  hover(x: number, y: number, event: PointerEvent): void;
  leave(): void;
  select(x: number, y: number): void;
}

const CLICK = 4; // px: a pointer that moved less has clicked

/**
 * Panning by dragging, zooming by pinching, by a wheel with Ctrl held and by a double click. A wheel alone scrolls the
 * page, and with Shift held, or sideways, the run.
 */
export function navigate(surface: HTMLElement, state: State, wishes: Wishes): void {
  const pointers = new Map<number, PointerEvent>();
  let moved = 0;
  const instantAt = (x: number) => state.view.from + (x / surface.clientWidth) * (state.view.to - state.view.from);
  const perPixel = () => (state.view.to - state.view.from) / surface.clientWidth;

  const drag = (event: PointerEvent) => {
    const before = pointers.get(event.pointerId)!;
    pointers.set(event.pointerId, event);
    moved += Math.abs(event.clientX - before.clientX) + Math.abs(event.clientY - before.clientY);
    const other = [...pointers.values()].find((one) => one.pointerId !== event.pointerId);
    if (other) {
      const [was, is] = [before, event].map((one) => Math.max(Math.abs(one.clientX - other.clientX), 20)) as [number, number];
      const middle = (event.clientX + other.clientX) / 2 - surface.getBoundingClientRect().left;
      wishes.show(zoomed(state.view, was / is, instantAt(middle), state.limits));
    } else if (moved >= CLICK) {
      wishes.show(panned(state.view, (before.clientX - event.clientX) * perPixel(), state.limits));
    }
  };

  surface.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    if (pointers.size === 0) moved = 0;
    pointers.set(event.pointerId, event);
    surface.setPointerCapture(event.pointerId);
  });
  surface.addEventListener("pointermove", (event) => {
    if (pointers.has(event.pointerId)) drag(event);
    wishes.hover(event.offsetX, event.offsetY, event);
  });
  surface.addEventListener("pointerup", (event) => {
    if (pointers.delete(event.pointerId) && moved < CLICK) wishes.select(event.offsetX, event.offsetY);
    if (event.pointerType !== "mouse") wishes.leave();
  });
  surface.addEventListener("pointercancel", (event) => pointers.delete(event.pointerId));
  surface.addEventListener("pointerleave", () => wishes.leave());
  surface.addEventListener("dblclick", (event) =>
    wishes.show(zoomed(state.view, 0.4, instantAt(event.offsetX), state.limits)));
  surface.addEventListener("wheel", (event) => {
    const sideways = event.shiftKey ? event.deltaX || event.deltaY : event.deltaX;
    if (event.ctrlKey || event.metaKey)
      wishes.show(zoomed(state.view, Math.exp(Math.max(-100, Math.min(event.deltaY, 100)) * 0.005), instantAt(event.offsetX), state.limits));
    else if (sideways !== 0) wishes.show(panned(state.view, sideways * perPixel(), state.limits));
    else return;
    event.preventDefault();
  }, { passive: false });
}

/** A key that moves the view, or null. Arrows, Home and End are for the lanes alone; elsewhere they scroll the page. */
export function viewAfter(key: string, shift: boolean, onLanes: boolean, { view, limits, cursor }: State): View | null {
  const span = view.to - view.from;
  const at = cursor ?? (view.from + view.to) / 2;
  if (key === "+" || key === "=") return zoomed(view, 0.6, at, limits);
  if (key === "-" || key === "_") return zoomed(view, 1 / 0.6, at, limits);
  if (key === "0") return limits;
  if (!onLanes) return null;
  if (key === "ArrowLeft") return panned(view, -span * (shift ? 0.5 : 0.1), limits);
  if (key === "ArrowRight") return panned(view, span * (shift ? 0.5 : 0.1), limits);
  if (key === "Home") return panned(view, limits.from - view.from, limits);
  if (key === "End") return panned(view, limits.to - view.to, limits);
  return null;
}
