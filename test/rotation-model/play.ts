import type { Clock } from '../../src/core/ports.ts';
import { createTailer, type Tailer } from '../../src/sources/logs/files/tailer.ts';
import type { LogsOptions } from '../../src/sources/logs/options.ts';
import type { LineSink } from '../../src/sources/logs/sink.ts';
import { logDefaults } from '../log-defaults.ts';
import { type ModelFile, modelDirectory } from './disk.ts';
import { judge, type Skipped } from './judge.ts';
import { choosePatterns, createScene, passOver, type Scene, type SceneOptions } from './scene.ts';
import { type Content, endLines, isBegun, type Line, lineOf, shortened } from './world.ts';

/**
 * A model of directories of logs. Writers, rotations and compressors run as sequences of single system calls, and a seeded
 * scheduler runs them between any two calls of the tailer. Lines have their log and generation in them, so that counts are
 * compared per generation.
 */
export interface Verdict {
  seed: number;
  style: string;
  /** What is wrong, by generation; empty if nothing is. */
  faults: string[];
  trace: string[];
  rotations: number;
  kills: number;
  lines: number;
}

export interface ModelOptions extends SceneOptions {
  kills?: boolean;
  /** Whether two roles write to each log. */
  shared?: boolean;
  /** Whether the scheduler acts within a scan, or only between two scans. */
  within?: boolean;
  trace?: boolean;
}

/** A tailer that may be killed between any two of its calls, and what it counts. */
interface ModelAgent {
  /** Lets the tailer work; false if it was killed meanwhile. */
  work(name: 'discover' | 'scan' | 'poll'): Promise<boolean>;
  save(): void;
  /** Kills the tailer after this many calls. */
  killAfter(calls: number): void;
  /** Ends the tailer and starts another one from what was saved. */
  restart(): void;
  /** Sets whether anything else happens while the tailer works. */
  quiet(isQuiet: boolean): void;
  readonly skips: readonly Skipped[];
  end(): void;
}

const ready = Promise.resolve();

/** Stands for SIGKILL. It has no stack, which would cost more than everything else. */
const killed = { message: 'killed' };

function servicesOf(
  patterns: readonly string[],
  isShared: boolean,
  random: (below: number) => number,
): Record<string, LogsOptions> {
  const optionsOf = (names: readonly string[]): LogsOptions => ({
    ...logDefaults,
    container: 'none',
    paths: names.map((pattern) => `${modelDirectory}/${pattern}`),
  });
  if (!isShared) return { history: optionsOf(patterns) };
  return { history: optionsOf(patterns), matching: optionsOf(random(2) === 0 ? patterns : ['app.log']) };
}

/** Counts lines by their text; `live` of a line is its present count. */
function createModelSinks(scene: Scene, note: ((text: string) => void) | undefined) {
  const { world } = scene;
  const counted: Line[] = [];
  const skips: Skipped[] = [];
  const count = (text: string) => {
    const line = lineOf(world, text);
    line.live++;
    counted.push(line);
  };
  const open = ({ path }: { path: string }): LineSink => ({
    write(bytes, start, end) {
      let at = start;
      for (;;) {
        const next = bytes.indexOf(10, at);
        if (next < 0 || next >= end) return at;
        const text = bytes.toString('latin1', at, next);
        note?.(`count ${path}: ${shortened(text)}`);
        count(text);
        at = next + 1;
      }
    },
    finish(bytes, start, end) {
      if (end === start) return;
      const text = bytes.toString('latin1', start, end);
      note?.(`count ${path}, unfinished: ${shortened(text)}`);
      count(text);
    },
    skip: (reason, bytes) => {
      note?.(`skip ${reason} ${bytes}`);
      skips.push({ reason, bytes });
    },
    state: () => undefined,
  });
  return { counted, skips, open };
}

function createModelAgent(scene: Scene, patterns: readonly string[], options: ModelOptions): ModelAgent {
  const { world } = scene;
  const { random, disk } = world;
  const note = options.trace ? world.note : undefined;
  const services = servicesOf(patterns, options.shared === true, random);
  const { counted, skips, open } = createModelSinks(scene, note);
  const saved = { section: undefined as Uint8Array | undefined, lines: 0, skips: 0 };
  const maxOpenFiles = [1, 2, 512, 512][random(4)]!;
  world.keepsOpen = maxOpenFiles > 2;
  const eagerness = options.within === false ? 0 : [0, 3, 10, 40][random(4)]!;
  let callsToLive = Number.POSITIVE_INFINITY;
  let isQuiet = false;
  let calls = 0;
  let isKilled = false;
  let within = 0;
  const beforeCall = (call: string, path = '') => {
    if (++calls > 200_000) throw new Error('a scan does not end');
    note?.(`  · ${call} ${path}`);
    if (callsToLive-- <= 0) {
      isKilled = true;
      throw killed;
    }
    if (isQuiet || eagerness === 0 || random(100) >= eagerness) return;
    if (within <= 0) return;
    const n = 1 + random(random(8) === 0 ? 40 : 6);
    within -= n;
    scene.steps(n);
  };
  /** A file that was read to its end need not stay open: the tailer does not know what is written to it later. */
  const closed = (file: ModelFile) => {
    const content = world.contents.get(file);
    if (!content?.isHeld) return;
    if (content.lines.every(({ live, written }) => live >= written)) content.isHeld = false;
  };
  const clock: Clock = { nowMs: scene.nowMs, monotonicMs: scene.monotonicMs, after: () => () => {} };
  const log = {
    write: (_: string, msg: string, fields?: object) => note?.(`${msg} ${JSON.stringify(fields)}`),
    named: () => log,
  };
  let view = disk.view(beforeCall, closed);
  let tailer: Tailer;
  const save = () => {
    // While the disk is full, the state cannot be written. Without any state, files that were rotated before the restart would be
    // passed over.
    if (isKilled || (world.isFull && random(2) === 0 && saved.section)) return;
    saved.section = tailer.freeze().slice();
    saved.lines = counted.length;
    saved.skips = skips.length;
    for (; world.savedLines < counted.length; world.savedLines++) counted[world.savedLines]!.saved++;
    for (const content of world.written) content.savedBytes = content.knownBytes;
    note?.('save');
  };
  const turn = () => {
    if (!isQuiet && random(30) === 0) save();
    return ready;
  };
  const start = () => {
    view = disk.view(beforeCall, closed);
    tailer = createTailer(
      { services, selected: new Set(Object.keys(services)), sliceMs: 0, maxOpenFiles },
      { openSink: open, clock, log, lag: () => {}, disk: view, turn },
    );
    if (saved.section) tailer.restore(saved.section.slice());
  };
  const followedFiles = (): ReadonlySet<ModelFile | undefined> => {
    const files = tailer.files().filter(({ state }) => state === 'following');
    return new Set(files.map(({ path }) => disk.file(path.slice(modelDirectory.length + 1))));
  };
  /**
   * The tailer knows a size that it was told for a content that was followed before, and for any content in a call during which
   * files at most grew. In other cases nobody can tell which content had that size.
   */
  const learn = (changes: number, begun: ReadonlySet<Content>, isScan: boolean) => {
    const isQuiet = disk.changes === changes;
    // Only after a scan a followed file is at the path that is reported: others may have been renamed to it since.
    const followed = isScan ? followedFiles() : new Set();
    for (const content of world.written) {
      const { file } = content;
      if (world.contents.get(file) !== content) continue;
      content.isOpen = file.held > 0;
      const told = Math.min(file.seen, file.length);
      const isKnown = content.isFollowed || (isQuiet && followed.has(file));
      if (isKnown) content.knownBytes = Math.max(content.knownBytes, told);
      else if (!begun.has(content)) content.passedBytes = Math.max(content.passedBytes, told);
      // After a rotation, the file that is shown under a name may be the one that had it before.
      content.isFollowed ||= content.isOpen || (isQuiet && followed.has(file));
    }
  };
  start();
  return {
    skips,
    save,
    async work(name) {
      note?.(name);
      calls = 0;
      within = random(200);
      const { changes } = disk;
      const begun = new Set(world.written.filter(isBegun));
      for (const { file } of world.written) file.seen = 0;
      try {
        await tailer[name]();
        learn(changes, begun, name !== 'poll');
      } catch (thrown) {
        if (!isKilled) throw thrown;
      }
      return !isKilled;
    },
    killAfter(count) {
      callsToLive = count;
    },
    restart() {
      note?.('kill');
      callsToLive = Number.POSITIVE_INFINITY;
      isKilled = false;
      view.closeAll();
      for (let at = saved.lines; at < counted.length; at++) counted[at]!.live--;
      counted.length = saved.lines;
      skips.length = saved.skips;
      for (const content of world.written) {
        content.isHeld = false;
        content.isOpen = false;
        content.isFollowed = false;
        content.knownBytes = content.savedBytes;
      }
      start();
    },
    quiet(next) {
      isQuiet = next;
    },
    end: () => view.closeAll(),
  };
}

/** Plays rounds of everything at once, with kills; returns their number. */
async function playRounds(scene: Scene, agent: ModelAgent, kills: boolean): Promise<number> {
  const { world, steps } = scene;
  const { random } = world;
  let count = 0;
  const rounds = 3 + random(8);
  const pause = [5, 20, 60, 120][random(4)]!;
  let isStarted = false;
  for (let round = 0; round < rounds; round++) {
    steps(random(pause));
    if (random(4) === 0 && world.busy === 0) scene.wait(random(random(3) === 0 ? 12_000 : 3000));
    const dies = kills && random(6) === 0;
    if (dies) agent.killAfter(random(60));
    let lived = true;
    if (isStarted) lived = await agent.work('discover');
    for (let n = random(3); lived && n > 0; n--) {
      lived = await agent.work('poll');
      steps(random(10));
    }
    lived = lived && (await agent.work('scan'));
    isStarted = false;
    if (!lived || (dies && random(2) === 0)) {
      steps(random(2) * random(pause * 2));
      count++;
      agent.restart();
      isStarted = true;
    } else if (random(2) === 0) agent.save();
    agent.killAfter(Number.POSITIVE_INFINITY);
  }
  return count;
}

/** Lets rotations that have begun end, until everything is quiet. */
async function settle(scene: Scene, agent: ModelAgent): Promise<void> {
  const { world } = scene;
  agent.quiet(true);
  world.isEnding = true;
  scene.finish();
  world.isFull = false;
  for (const log of scene.logs) endLines(world, log);
  for (const pauseMs of [500, 11_000, 3_000, 500, 11_000, 3_000]) {
    await agent.work('scan');
    scene.wait(pauseMs, 1000);
  }
  agent.end();
}

/** The lines that are in archives. */
function packedLines({ world }: Scene): Set<Line> {
  const packed = new Set<Line>();
  for (const [name, node] of world.disk.names) {
    if (!name.endsWith('.gz') || !('file' in node)) continue;
    for (const line of world.contents.get(node.file)?.lines ?? []) packed.add(line);
  }
  return packed;
}

/** Plays one seed from its beginning to its verdict. */
export async function play(seed: number, options: ModelOptions = {}): Promise<Verdict> {
  const trace: string[] = [];
  const scene = createScene(seed, options, options.trace ? (text) => void trace.push(text) : undefined);
  const { world, style } = scene;
  const { random } = world;
  // These steps happen before the agent's first scan.
  scene.steps(random(3) === 0 ? random(120) : random(10));
  // Equal content under unrelated names is two files at the first scan, so no copy must be under way then.
  if (style === 'strangeCopy') scene.finish();
  const patterns = choosePatterns(scene);
  passOver(scene, patterns);
  const packedBefore = packedLines(scene);
  const agent = createModelAgent(scene, patterns, options);
  agent.quiet(true);
  await agent.work('scan');
  agent.quiet(false);
  agent.save();
  const kills = await playRounds(scene, agent, options.kills !== false);
  await settle(scene, agent);
  const countsBanners = style === 'rewritten' || style === 'deleted';
  return {
    seed,
    style: `${style}${scene.compresses ? '+gzip' : ''} ${patterns}`,
    faults: judge(world, { skips: agent.skips, packedBefore, countsBanners }),
    trace,
    rotations: world.rotations,
    kills,
    lines: [...world.lines.values()].reduce((sum, { written }) => sum + written, 0),
  };
}
