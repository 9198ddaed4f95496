import type { Handle } from './handle.ts';
import type { Owner, Series } from './series.ts';

/** The owners of a series as a doubly linked list: no memory beside them, and any of them leaves at once. */
export function linkOwner(series: Series, owner: Owner): void {
  owner.previous = undefined;
  owner.next = series.first;
  if (series.first) series.first.previous = owner;
  series.first = owner;
}

export function unlinkOwner(series: Series, owner: Owner): void {
  if (owner.previous) owner.previous.next = owner.next;
  else series.first = owner.next;
  if (owner.next) owner.next.previous = owner.previous;
  owner.next = undefined;
  owner.previous = undefined;
}

export function* ownersOf(series: Series): Generator<Handle> {
  for (let owner = series.first; owner; owner = owner.next) yield owner as Handle;
}
