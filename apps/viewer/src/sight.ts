/** Which elements are in the window, or nearly: what nobody sees is not drawn. */
export class Sight {
  private readonly seen = new Set<Element>();
  private readonly observer: IntersectionObserver;
  everything = false; // as in print

  /** @param changed  called when something has come into the window */
  constructor(changed: () => void) {
    this.observer = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        if (isIntersecting) this.seen.add(target);
        else this.seen.delete(target);
      }
      changed();
    }, { rootMargin: "100px" });
  }
  watch(element: Element): void {
    this.observer.observe(element);
  }
  has(element: Element): boolean {
    return this.everything || this.seen.has(element);
  }
}
