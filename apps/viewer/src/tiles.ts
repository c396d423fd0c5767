import type { View } from "./view.js";

/** Width of a tile in CSS pixels: a whole number of pixels of the screen at every usual zoom of a browser, 2/3 and 1.1 too. */
export const TILE = 300;
const LARGEST_CANVAS = 16000; // px; browsers draw nothing on much larger ones

/** A view on whole pixels: it begins `shift` px behind the start of the tile `first`. A tile is `length` ns long and starts at a multiple of it. */
export interface Window {
  length: number;
  first: number;
  shift: number;
  view: View;
}

/** Paints a part of the picture, which is as wide as the canvas. */
export type Paint = (context: CanvasRenderingContext2D, part: View, width: number) => void;

/** Pixels of the screen for one CSS pixel: as many as a canvas of this height can have, and a whole number for a tile. */
export function resolutionOf(wanted: number, height: number): number {
  return Math.max(Math.floor(TILE * Math.min(wanted, LARGEST_CANVAS / Math.max(height, 1)) + 1e-6), 1) / TILE;
}

/** The window nearest to a view of this width. @param grid  ns; `view` and starts of tiles are multiples of it, so that no sum is rounded */
export function windowOf(view: View, width: number, resolution: number, grid: number): Window {
  const length = Math.max(Math.round(((view.to - view.from) * TILE) / width / grid), 1) * grid;
  const perNs = TILE / length;
  const first = Math.floor(view.from / length);
  const shift = Math.round((view.from - first * length) * perNs * resolution) / resolution;
  const from = first * length + shift / perNs;
  return { length, first, shift, view: { from, to: from + width / perNs } };
}

/**
 * A wide picture as a row of canvases, each painted once and then moved.
 *
 * While a view is panned, only what comes into it is painted. A tile does not depend on the view in which it is seen:
 * the picture after panning is the one that a new drawing of its view gives.
 */
export class Tiles {
  private slots: { context: CanvasRenderingContext2D; at: number }[] = []; // the tile k is in slot k modulo their number
  private width = 0;
  private height = 0;
  private resolution = 1;

  /** @param place  an element that clips what is beyond it */
  constructor(private readonly place: HTMLElement) {
    place.classList.add("tiles");
  }

  resize(width: number, height: number, resolution: number): void {
    Object.assign(this, { width, height, resolution });
    for (const { context } of this.slots) context.canvas.remove();
    this.slots = Array.from({ length: Math.ceil(width / TILE) + 1 }, () => ({ context: this.canvas(TILE), at: NaN }));
    this.place.prepend(...this.slots.map(({ context }) => context.canvas));
    this.place.style.width = `${width}px`;
    this.place.style.height = `${height}px`;
  }

  /** Forgets what is painted. */
  clear(): void {
    for (const slot of this.slots) slot.at = NaN;
  }

  show({ length, first, shift }: Window, paint: Paint): void {
    const count = Math.ceil((shift + this.width) / TILE);
    const slots = this.slots.length;
    for (let k = first; k < first + slots; ++k) {
      const slot = this.slots[((k % slots) + slots) % slots]!;
      const seen = k < first + count;
      if (seen && slot.at !== k) paint(slot.context, { from: k * length, to: (k + 1) * length }, TILE);
      if (seen) slot.at = k;
      slot.context.canvas.style.transform = `translateX(${(seen ? k - first : -2) * TILE - shift}px)`;
    }
  }

  /** A canvas as high as the tiles. */
  canvas(width: number): CanvasRenderingContext2D {
    const canvas = document.createElement("canvas");
    canvas.width = Math.round(width * this.resolution);
    canvas.height = Math.round(this.height * this.resolution);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${this.height}px`;
    const context = canvas.getContext("2d", { alpha: false })!;
    context.setTransform(this.resolution, 0, 0, this.resolution, 0, 0);
    return context;
  }
}
