import type { Listener, ListenerOptions } from './listener.ts';

/** Shares listeners between configurations, so that a reload does not have to unbind and rebind an address. */
export interface Listeners {
  /** The listener on this address, bound by the first call; it is closed by the last holder's `close`. */
  hold(options: ListenerOptions): Promise<Listener>;
}

interface Held {
  readonly listener: Promise<Listener>;
  holders: number;
}

/**
 * `bind` is `createListener` with its deps. Listeners are shared by address; those on port 0 by name, too. Routes and
 * protection are those that were set last, limits those of the first holder.
 */
export function createListeners(bind: (options: ListenerOptions) => Promise<Listener>): Listeners {
  const byKey = new Map<string, Held>();

  const drop = async (key: string, held: Held): Promise<void> => {
    held.holders -= 1;
    if (held.holders > 0) return;
    if (byKey.get(key) === held) byKey.delete(key);
    await (await held.listener).close();
  };

  return {
    async hold(options) {
      const key = options.address.endsWith(':0') ? `${options.name} ${options.address}` : options.address;
      const held = byKey.get(key) ?? { listener: bind(options), holders: 0 };
      byKey.set(key, held);
      held.holders += 1;
      const listener = await held.listener.catch((thrown: unknown) => {
        if (byKey.get(key) === held) byKey.delete(key);
        throw thrown;
      });
      let dropped: Promise<void> | undefined;
      return {
        address: listener.address,
        get routes() {
          return listener.routes;
        },
        set routes(next) {
          listener.routes = next;
        },
        protect: listener.protect,
        close: () => (dropped ??= drop(key, held)),
      };
    },
  };
}
