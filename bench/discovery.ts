/**
 * Measures how late the built agent discovers files, and whether any of their lines is lost:
 *   services    one new file for each of 90 services of one configuration
 *   short       1,000 files that live for 3 s each, 50 begun per second
 *   catch-up    a new file beside 400 MB that are being read
 *
 * The delay of a file is the time from its last line to the scrape that has all of its lines.
 *
 *   npm run bench -- discovery [MEGABYTES]
 */
import { appendFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { numberAt } from './arguments.ts';
import { textOf } from './figures.ts';
import { configIn, newPlace, pause, startAgent, stopped } from './process.ts';

const megabytes = numberAt(0, 'MEGABYTES', 400);
const root = newPlace('discovery');
const linesEach = 20;
const line = (file: string) => `{"level":"info","file":"${file}","msg":"${'x'.repeat(100)}"}\n`;

async function startCounting(name: string, services: Record<string, string>) {
  const rules = 'rules: [{name: lines_by_file, type: counter, help: Lines, labels: {file: file}}]';
  const parts = Object.entries(services).map(
    ([service, path]) => `  ${service}: {logs: {paths: ["${path}"], startAt: beginning, ${rules}}}\n`,
  );
  const rest = `admin: ~\nlimits: {seriesPerMetric: 20000}\nservices:\n${parts.join('')}`;
  const { child, address } = await startAgent(configIn(join(root, `${name}-agent`), rest));
  return {
    async counts(): Promise<Map<string, number>> {
      const page = await textOf(`http://${address('metrics')}/metrics`);
      const found = page.matchAll(/^lines_by_file(?:_total)?\{[^}]*file="([^"]*)"[^}]*\} (\S+)$/gm);
      return new Map([...found].map(([, file, value]) => [file!, Number(value)]));
    },
    end: () => stopped(child),
  };
}

type Agent = Awaited<ReturnType<typeof startCounting>>;

/** Scrapes until everything that was written is counted, or nothing has changed for 30 s. */
async function watch(agent: Agent, written: ReadonlyMap<string, number>, isWriting: () => boolean) {
  const delays = new Map<string, number>();
  let changed = performance.now();
  while (isWriting() || (delays.size < written.size && performance.now() - changed < 30_000)) {
    const counts = await agent.counts();
    const now = performance.now();
    for (const [file, writtenMs] of written) {
      if (delays.has(file) || counts.get(file) !== linesEach) continue;
      delays.set(file, now - writtenMs);
      changed = now;
    }
    await pause(20);
  }
  const counts = await agent.counts();
  const lost = [...written.keys()].reduce((sum, file) => sum + linesEach - (counts.get(file) ?? 0), 0);
  return { delays: [...delays.values()].sort((a, b) => a - b), lost };
}

function print(what: string, { delays, lost }: { delays: number[]; lost: number }, files: number) {
  const ms = (value: number | undefined) => `${(value ?? Number.NaN).toFixed(0)} ms`;
  process.stdout.write(
    `${what}: ${files} files, median ${ms(delays[delays.length >> 1])}, largest ${ms(delays.at(-1))}, ` +
      `${lost} of ${files * linesEach} lines lost\n`,
  );
}

async function manyServices(): Promise<void> {
  const services: Record<string, string> = {};
  for (let n = 0; n < 90; n++) {
    mkdirSync(join(root, 'services', `${n}`), { recursive: true });
    services[`service${n}`] = join(root, 'services', `${n}`, '*.log');
  }
  const agent = await startCounting('services', services);
  const written = new Map<string, number>();
  const watching = watch(agent, written, () => written.size < 90);
  for (let n = 0; n < 90; n++) {
    writeFileSync(join(root, 'services', `${n}`, 'a.log'), line(`s${n}`).repeat(linesEach));
    written.set(`s${n}`, performance.now());
    await pause(30);
  }
  print('services', await watching, 90);
  await agent.end();
}

async function shortLived(): Promise<void> {
  const place = join(root, 'short');
  mkdirSync(place);
  const agent = await startCounting('short', { short: join(place, '*.log') });
  const written = new Map<string, number>();
  let isWriting = true;
  const watching = watch(agent, written, () => isWriting);
  const ends: Promise<void>[] = [];
  for (let n = 0; n < 1000; n++) {
    const path = join(place, `${n}.log`);
    writeFileSync(path, line(`f${n}`).repeat(linesEach));
    written.set(`f${n}`, performance.now());
    ends.push(pause(3000).then(() => rmSync(path)));
    await pause(20);
  }
  isWriting = false;
  print('short', await watching, 1000);
  await Promise.all(ends);
  await agent.end();
}

async function besideCatchUp(): Promise<void> {
  const place = join(root, 'catch-up');
  mkdirSync(place);
  const agent = await startCounting('catch-up', { beside: join(place, '*.log') });
  const text = line('large');
  const chunk = text.repeat(Math.ceil(2 ** 20 / text.length));
  for (let n = 0; n < megabytes; n++) appendFileSync(join(place, 'large.txt'), chunk);
  const written = new Map<string, number>();
  let isWriting = true;
  const watching = watch(agent, written, () => isWriting);
  renameSync(join(place, 'large.txt'), join(place, 'large.log'));
  const wanted = (megabytes * chunk.length) / text.length;
  for (let n = 0; ((await agent.counts()).get('large') ?? 0) < wanted; n++) {
    writeFileSync(join(place, `${n}.log`), line(`f${n}`).repeat(linesEach));
    written.set(`f${n}`, performance.now());
    await pause(500);
  }
  isWriting = false;
  print('catch-up', await watching, written.size);
  await agent.end();
}

await manyServices();
await shortLived();
await besideCatchUp();
