// The example service: four make-believe roles for the agent to watch. See examples/README.md.
import { createInterface } from 'node:readline';
import { systemClock } from '../../src/core/clock.ts';
import { parseIncident } from './incidents.ts';
import { parseOptions, type ServiceOptions, usage } from './options.ts';
import { createService } from './service.ts';

const say = (what: object) => void process.stdout.write(`${JSON.stringify(what)}\n`);
const complain = (thrown: unknown) => void process.stderr.write(`${(thrown as Error).message}\n`);

async function run(options: ServiceOptions) {
  const service = createService(options, { clock: systemClock, announce: (incident) => say({ incident }) });
  const addresses = await service.start();
  const lines = createInterface({ input: process.stdin });
  lines.on('line', (line) => {
    if (line.trim() === '') return;
    try {
      service.strike(parseIncident(line));
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
