/**
 * Rows of pixels, one for each band, in which slices of a few pixels are painted.
 *
 * Thousands of narrow rectangles a frame take a canvas longer than a frame has. Here each costs some stores; a row is
 * then drawn once, stretched to the height of its band.
 */
export class Strips {
  private readonly canvas = document.createElement("canvas");
  private readonly context = this.canvas.getContext("2d", { willReadFrequently: true })!;
  private image = new ImageData(1, 1);
  private pixels = new Uint32Array(1); // alpha, blue, green, red from the highest byte on

  width = 1;

  resize(width: number, rows: number): void {
    this.canvas.width = this.width = Math.max(width, 1);
    this.canvas.height = Math.max(rows, 1);
    this.image = this.context.createImageData(this.canvas.width, this.canvas.height);
    this.pixels = new Uint32Array(this.image.data.buffer);
  }
  clear(): void {
    this.pixels.fill(0);
  }

  /**
   * Paints a slice, or a column of many that is filled in part. Little is painted as more than it is, to be visible.
   * @param fill  part of the time from left to right that is filled
   */
  paint(row: number, left: number, right: number, fill: number, colour: number): void {
    const begin = row * this.width;
    const last = Math.min(Math.ceil(right), this.width);
    for (let column = Math.max(Math.floor(left), 0); column < last; ++column) {
      const covered = fill * (Math.min(right, column + 1) - Math.max(left, column));
      const before = this.pixels[begin + column]! >>> 24;
      const alpha = Math.min(before + 76 + 179 * covered, 255);
      this.pixels[begin + column] = ((alpha << 24) | colour) >>> 0;
    }
  }
  /** Hands what was painted over to `drawn`; call it before the first row is drawn. */
  finish(): void {
    this.context.putImageData(this.image, 0, 0);
  }
  drawn(row: number, onto: CanvasRenderingContext2D, top: number, width: number, height: number): void {
    onto.drawImage(this.canvas, 0, row, this.width, 1, 0, top, width, height);
  }
}

/** "#rrggbb" as pixels have it. */
export function packed(colour: string): number {
  const rgb = parseInt(colour.slice(1), 16);
  return ((rgb & 0xff) << 16) | (rgb & 0xff00) | (rgb >> 16);
}
