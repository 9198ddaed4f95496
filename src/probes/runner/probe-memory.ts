import { AgentError } from '../../core/errors.ts';
import type { Durable } from '../../core/ports.ts';

/** What probes remember between runs and across restarts, by probe name. */
export interface Memories extends Durable {
  /** A copy; undefined if there is none. */
  recall(name: string): unknown;
  /** `json` is JSON text. */
  keep(name: string, json: string): void;
  /** Memories of other probes than these are kept up to a limit, in case the probes come back. */
  use(names: ReadonlySet<string>): void;
}

const version = 1;

function unreadable(what: string, cause?: unknown): AgentError {
  return new AgentError('state_unreadable', { where: 'state section probes', what }, cause);
}

/** `{"version": 1, "memories": [[name, memory], …]}`. Throws `state_unreadable` on anything else. */
function decode(section: Uint8Array): [name: string, json: string][] {
  let content: { version?: unknown; memories?: unknown } | null;
  try {
    content = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(section));
  } catch (thrown) {
    throw unreadable('not JSON', thrown);
  }
  if (content?.version !== version) throw unreadable('unknown version');
  if (!Array.isArray(content.memories)) throw unreadable('no memories');
  return content.memories.map((memory: unknown) => {
    if (!Array.isArray(memory) || memory.length !== 2 || typeof memory[0] !== 'string') {
      throw unreadable('a memory without a name');
    }
    return [memory[0], JSON.stringify(memory[1])];
  });
}

export function createMemories({ maxUnused = 1000 }: { maxUnused?: number } = {}): Memories {
  /** Oldest first. */
  const texts = new Map<string, string>();
  let used: ReadonlySet<string> = new Set();
  let frozen: Uint8Array | undefined;

  const put = (name: string, json: string) => {
    texts.delete(name);
    texts.set(name, json);
    frozen = undefined;
  };
  return {
    name: 'probes',
    recall(name) {
      const json = texts.get(name);
      return json === undefined ? undefined : JSON.parse(json);
    },
    keep(name, json) {
      if (texts.get(name) !== json) put(name, json);
    },
    use(names) {
      used = names;
      const unused = [...texts.keys()].filter((name) => !used.has(name));
      for (const name of unused.slice(0, Math.max(0, unused.length - maxUnused))) texts.delete(name);
      frozen = undefined;
    },
    freeze() {
      if (!frozen) {
        const memories = [...texts].map(([name, json]) => `[${JSON.stringify(name)},${json}]`);
        frozen = new TextEncoder().encode(`{"version":${version},"memories":[${memories.join(',')}]}`);
      }
      return frozen;
    },
    restore(section) {
      for (const [name, json] of decode(section)) put(name, json);
    },
  };
}
