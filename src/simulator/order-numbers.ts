/** Numbers of orders, resting and filled ones alike, from 1 without gaps. */
export interface OrderNumbers {
  next(): number;
  /** The one that `next` would give. */
  upcoming(): number;
}

export function createOrderNumbers(): OrderNumbers {
  let last = 0;
  return {
    next() {
      last += 1;
      return last;
    },
    upcoming: () => last + 1,
  };
}
