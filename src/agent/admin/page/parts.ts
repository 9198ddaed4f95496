import type { Level } from '../../report.ts';
import { type Child, h } from './dom.ts';
import { count } from './format.ts';

/** The data that every section is drawn from. */
export interface Frame {
  nowMs: number;
  /** The number of samples that plots and strips show. */
  shown: number;
  /** The length of that time as text: `1 h`. */
  shownText: string;
  /** Whether the reader's filter matches a store or a domain of this name. */
  takes(name: string): boolean;
}

export type Tone = 'good' | 'warn' | 'bad' | 'quiet';

export const toneOf = (level: Level): Tone =>
  (({ ok: 'good', unknown: 'quiet', warning: 'warn', critical: 'bad' }) as const)[level];

const glyphs: Readonly<Record<Tone, string>> = {
  good: 'M4 10.5l4 4 8-9',
  warn: 'M10 4v7.5M10 15v.6',
  bad: 'M5 5l10 10M15 5L5 15',
  quiet: 'M5 10h10',
};

/** A mark. Its shape and its colour have the same meaning. */
export const glyph = (tone: Tone): HTMLElement =>
  h('svg', { class: 'glyph', viewBox: '0 0 20 20', 'aria-hidden': 'true' }, h('path', { d: glyphs[tone] }));

/** A state in one word. */
export const pill = (tone: Tone, text: string): HTMLElement =>
  h('span', { class: `pill ${tone}` }, glyph(tone), text);

interface SectionParts {
  id: string;
  title: string;
  /** Shown beside the title. */
  aside?: Child;
  /** Whether the section takes the whole width on a page with columns. */
  wide?: boolean;
}

export const section = ({ id, title, aside, wide }: SectionParts, ...children: Child[]): HTMLElement =>
  h(
    'section',
    { class: `card${wide ? ' wide' : ''}`, key: id, id, 'aria-labelledby': `${id}-title` },
    h('div', { class: 'head' }, h('h2', { id: `${id}-title` }, title), h('div', { class: 'aside' }, aside)),
    children,
  );

export const note = (...children: Child[]): HTMLElement => h('p', { class: 'note' }, children);

/** A share of a whole as a bar. */
export function meter(share: number, text: string, tone: Tone = 'quiet'): HTMLElement {
  const width = Math.max(0, Math.min(1, Number.isFinite(share) ? share : 0));
  return h(
    'span',
    { class: 'meter' },
    h(
      'svg',
      { class: `bar ${tone}`, viewBox: '0 0 100 4', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
      h('rect', { class: 'rail', x: 0, y: 0, width: 100, height: 4 }),
      h('rect', { class: 'fill', x: 0, y: 0, width: (width * 100).toFixed(1), height: 4 }),
    ),
    h('span', { class: 'number' }, text),
  );
}

/** A list of facts by name. */
export const facts = (...rows: readonly (readonly [string, Child] | false | undefined)[]): HTMLElement =>
  h(
    'dl',
    { class: 'facts' },
    rows.flatMap((row) => (row ? [h('div', {}, h('dt', {}, row[0]), h('dd', {}, row[1]))] : [])),
  );

/** The maximum number of rows in a fold: a browser takes seconds for thousands of rows, and draws them again with each change. */
const mostUnfolded = 200;

/** Up to this many wrong entries are not folded. If there are more, they have one cause, and the list of causes counts them. */
const mostWrong = 24;

interface Fold<T> {
  key: string;
  most: number;
  /** The noun for the entries in the folded part. */
  noun?: string;
  /** Whether an entry is wrong; wrong entries come first. */
  isWrong?(one: T): boolean;
}

/**
 * A list that shows only its first `most` entries, and all that are wrong unless these are many, until the rest is opened. `list`
 * draws a part of it; `isRest` marks the folded part. The fold of a very long list is cut, with a note.
 */
export function folded<T>(
  { key, most: usual, noun = '', isWrong = () => false }: Fold<T>,
  all: readonly T[],
  list: (part: readonly T[], isRest: boolean) => HTMLElement,
): Child {
  const wrong = all.filter(isWrong).length;
  const most = Math.max(usual, wrong > mostWrong ? 0 : wrong);
  if (all.length <= most) return all.length > 0 && list(all, false);
  const unshown = all.length - most - mostUnfolded;
  return [
    list(all.slice(0, most), false),
    h(
      'details',
      { key, class: 'more' },
      h('summary', {}, `${count(all.length - most)} more ${noun}`.trimEnd()),
      list(all.slice(most, most + mostUnfolded), true),
      unshown > 0 && note(`${count(unshown)} more are in svc-agent status --json.`),
    ),
  ];
}
