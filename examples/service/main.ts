// The example service: four make-believe roles for the agent to watch. See examples/README.md.
import { createInterface } from 'node:readline';
import { systemClock } from '../../src/core/clock.ts';
import { parseOrder } from './incidents.ts';
import { parseOptions, type ServiceOptions, usage } from './options.ts';
import { createService, nothingToEnd } from './service.ts';
import { hasStore } from './store/store.ts';

const say = (what: object) => void process.stdout.write(`${JSON.stringify(what)}\n`);
const complainOf = (why: string) => void process.stderr.write(`${why}\n`);
const complain = (thrown: unknown) => complainOf((thrown as Error).message);

/** PGlite is a development dependency: where it is not, all the rest still works. */
function asFarAsPossible(options: ServiceOptions): ServiceOptions {
  if (options.storePort === undefined || hasStore()) return options;
  complainOf('without a store: @electric-sql/pglite is not installed');
  return { ...options, storePort: undefined };
}

async function run(options: ServiceOptions) {
  const service = createService(asFarAsPossible(options), {
    clock: systemClock,
    announce: (incident, phase) => say({ incident, phase }),
    complain: complainOf,
  });
  const addresses = await service.start();
  const lines = createInterface({ input: process.stdin });
  lines.on('line', (line) => {
    if (line.trim() === '') return;
    try {
      const order = parseOrder(line, service.kinds);
      const outcome = service.obey(order);
      // What began or ended is announced.
      if (outcome === nothingToEnd) say({ outcome });
    } catch (thrown) {
      complain(thrown);
    }
  });
  const end = () => {
    lines.close();
    process.stdin.unref?.();
    service.stop().catch(complain);
  };
  process.once('SIGTERM', end);
  process.once('SIGINT', end);
  say({ ready: true, ...addresses });
}

try {
  const options = parseOptions(process.argv.slice(2));
  if (options) await run(options);
  else process.stdout.write(usage);
} catch (thrown) {
  complain(thrown);
  process.exitCode = 2;
}
