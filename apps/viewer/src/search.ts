export type Ascending = ArrayLike<number>;

/** First index in [from, to) with a value of at least `wanted`; `to` where there is none. @pre values ascend. */
export function lowerBound(values: Ascending, wanted: number, from = 0, to = values.length): number {
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (values[middle]! < wanted) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** First index in [from, to) with a value above `wanted`; `to` where there is none. @pre values ascend. */
export function upperBound(values: Ascending, wanted: number, from = 0, to = values.length): number {
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (values[middle]! <= wanted) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** `lowerBound` for an answer that is near `from`: doubles its steps, so it takes the logarithm of the distance. */
export function gallop(values: Ascending, wanted: number, from: number, to = values.length): number {
  let step = 1;
  let last = from;
  while (last + step < to && values[last + step]! < wanted) {
    last += step;
    step *= 2;
  }
  return lowerBound(values, wanted, last, Math.min(to, last + step));
}
