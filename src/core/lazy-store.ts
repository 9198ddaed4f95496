import { createImmediateStore, type Store } from './store.ts';

/** A store whose owner writes what it has gathered when somebody looks, and not before. */
export interface LazyStore extends Store {
  /** `write` is called in front of each picture, in the same step: it must be quick and must not throw. */
  onLook(write: () => void): void;
}

/** No total in it ever begins anew: its owner adds them up itself, so that a fall is a negative observation. */
export function createLazyStore(): LazyStore {
  const store = createImmediateStore();
  let write = (): void => {};
  return {
    ...store,
    restarted() {},
    hold() {
      write();
      return store.hold();
    },
    onLook(next) {
      write = next;
    },
  };
}
