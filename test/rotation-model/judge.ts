import { type Content, isBanner, type Line, type World } from './world.ts';

export interface Skipped {
  readonly reason: string;
  readonly bytes: number;
}

interface Outcome {
  readonly skips: readonly Skipped[];
  /** Lines that were in archives before the first scan. */
  readonly packedBefore: ReadonlySet<Line>;
  /** Whether every banner must be counted, too. */
  readonly countsBanners: boolean;
}

/** The generation of a line. Bytes of an archive that were read as lines are shown as one generation. */
const generationOf = (text: string) =>
  /[^\x20-\x7e]/.test(text) ? 'binary content' : (/\S+ g\d+(?= n)/.exec(text)?.[0] ?? text.slice(0, 20));

/**
 * If fewer bytes than this were seen of a file, they identify nothing: it may be read as another file and count as skipped, too.
 */
const unknowableBytes = 16;
/** The length of an unfinished line that was lost together with its content. */
const unfinishedBytes = 600;

const bytesOf = ({ text }: Line) => text.length + 1;

/** Allows lines to be missing if their contents became unreachable while the tailer did not have them open. */
function allowMissing(world: World): void {
  for (const { isOut, isHeld, lines } of world.written) {
    if (isOut && !isHeld) for (const line of lines) if (!isBanner(line)) line.allowed++;
  }
}

/** A line that does not begin with a banner or a part of another line. */
const startsWhole = /^(\S+Z )?\S+ g\d+ n\d+ /;

/** The part of a shorter content that the tailer compares: up to its last mark. */
function compared(text: string): string {
  const step = text.length < 32 ? 16 : text.length < 256 ? 32 : 256;
  return text.slice(0, Math.min(text.length - (text.length % step), 4096));
}

/**
 * Allows everything to be missing from contents that are the beginning of another content as far as the tailer compares them, such
 * as a banner and a part of a line: they cannot be distinguished from an unfinished copy.
 */
function allowBeginnings({ written }: World): void {
  const begun = written.filter(({ lines: [first] }) => first && !startsWhole.test(first.text));
  if (begun.every(({ lines }) => lines.every(isBanner))) return;
  const textOf = ({ lines }: Content) => lines.map(({ text }) => `${text}\n`).join('');
  const texts = new Map(written.map((content) => [content, textOf(content)]));
  for (const content of begun) {
    const own = compared(texts.get(content)!);
    const isBeginning = written.some((other) => other !== content && texts.get(other)!.startsWith(own));
    if (isBeginning) for (const line of content.lines) if (!isBanner(line)) line.allowed++;
  }
}

/** The number of bytes of the next content that begins with the same line. */
function bytesAfter({ written }: World, content: Content): number {
  const later = written.slice(written.indexOf(content) + 1);
  const next = later.find(({ lines }) => lines[0]?.text === content.lines[0]?.text);
  return next ? next.lines.reduce((sum, line) => sum + bytesOf(line), 0) : 0;
}

/** The number of bytes that are missing from contents that became unreachable: all of them, and those that the tailer knew. */
function missingBytes(world: World): { all: number; known: number; of: string[] } {
  let all = 0;
  let known = 0;
  const of: string[] = [];
  for (const content of world.written) {
    const { isOut, isAlike, lines, file } = content;
    if (!isOut) continue;
    // If nothing distinguishes the content from the next one, only the difference of their lengths is missing.
    const knownBytes = content.knownBytes - (isAlike ? bytesAfter(world, content) : 0);
    all += unfinishedBytes;
    let at = 0;
    const before = known;
    for (const line of lines) {
      const bytes = bytesOf(line);
      at += bytes;
      if (line.live >= line.written) continue;
      all += bytes;
      if (line.written === 1 && line.allowed === 1 && !line.mayLose && at <= knownBytes) known += bytes;
    }
    if (known > before)
      of.push(
        `${known - before} of ${knownBytes} in ${generationOf(lines.at(-1)!.text)} (inode ${file.ino})`,
      );
  }
  return { all, known, of };
}

/** What is wrong, by generation; empty if nothing is. */
export function judge(world: World, { skips, packedBefore, countsBanners }: Outcome): string[] {
  const faults = new Map<string, number>();
  const found = (fault: string, { text }: Line) => {
    const key = `${fault} in ${generationOf(text)}${process.env.MODEL_LINES ? ` (${text})` : ''}`;
    faults.set(key, (faults.get(key) ?? 0) + 1);
  };
  allowMissing(world);
  if (!countsBanners) allowBeginnings(world);
  const all = [...world.lines.values()];
  const losable = all.filter(({ mayLose }) => mayLose);
  // A banner that was cut cannot be distinguished from the beginning of a whole one either.
  const cut = [...losable, ...all.filter((line) => line.allowed > 0 || (isBanner(line) && !countsBanners))];
  for (const line of all) {
    const { text, written, live } = line;
    // The rest of a line that was cut counts as a line.
    const parts =
      live > written ? cut.filter((whole) => whole !== line && whole.text.includes(text)).length : 0;
    if (live > written + parts) found(written === 0 ? 'unknown line' : 'counted twice', line);
    // A generation that has only a banner cannot be distinguished from an unfinished copy of the next generation.
    if (line.mayLose || packedBefore.has(line) || (isBanner(line) && !countsBanners)) continue;
    if (live < written - line.allowed) found('lost', line);
  }
  const faulty = [...faults].map(([fault, n]) => `${fault}: ${n}`);
  const missing = missingBytes(world);
  const skipped = skips.reduce((sum, { bytes }) => sum + bytes, 0);
  if (skipped + unknowableBytes * world.written.length < missing.known)
    faulty.push(
      `${missing.known} known bytes are missing, ${skipped} counted as skipped; ${missing.of.join(', ')}`,
    );
  if (losable.length > 0) return faulty;
  const told = skips.filter(({ bytes }) => bytes >= unknowableBytes);
  const toldBytes = told.reduce((sum, { bytes }) => sum + bytes, 0);
  const passed = world.written.reduce((sum, { passedBytes }) => sum + passedBytes, 0);
  if (toldBytes <= missing.all + passed) return faulty;
  return [...faulty, ...told.map(({ reason, bytes }) => `${bytes} bytes skipped ${reason} though not lost`)];
}
