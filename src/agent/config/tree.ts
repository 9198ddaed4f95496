import type { Fault } from '../../core/errors.ts';
import { withoutUrlSecrets } from '../../core/redacted.ts';
import type { PlacedFault, Position } from './types.ts';

/** A configuration as it is written. Each value has its place in the file. */
export type TreeNode = MapNode | ListNode | ScalarNode;

export interface MapNode {
  kind: 'map';
  place: Position;
  entries: Map<string, MapEntry>;
}

export interface MapEntry {
  key: Position;
  node: TreeNode;
}

export interface ListNode {
  kind: 'list';
  place: Position;
  items: TreeNode[];
}

export type Scalar = string | number | boolean | null;

export interface ScalarNode {
  kind: 'scalar';
  place: Position;
  value: Scalar;
  /** The text before variables were expanded. Messages show this text, because a variable may contain a secret. */
  written?: string;
}

/** Keys and indices from the root. */
export type TreePath = readonly (string | number)[];

/** A path for people: `services.frontend.logs.rules[0].name`, odd keys in quotes. */
export function pathText(path: TreePath): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (/^[\w-]+$/.test(step)) text += text === '' ? step : `.${step}`;
    else text += `[${JSON.stringify(step)}]`;
  }
  return text;
}

/** Whether the text of a path names a part or something within it. */
export function isWithin(path: string, part: string): boolean {
  return path === part || path.startsWith(`${part}.`) || path.startsWith(`${part}[`);
}

export function isNull(node: TreeNode | undefined): boolean {
  return node?.kind === 'scalar' && node.value === null;
}

/** The node at a path, or undefined; null counts as absent. */
export function nodeAt(root: TreeNode | undefined, ...path: TreePath): TreeNode | undefined {
  let node = root;
  for (const step of path) {
    if (node?.kind === 'map') node = node.entries.get(String(step))?.node;
    else if (node?.kind === 'list' && typeof step === 'number') node = node.items[step];
    else return undefined;
  }
  return isNull(node) ? undefined : node;
}

/** The string, number or boolean at a path; undefined for anything else. */
export function scalarAt(root: TreeNode | undefined, ...path: TreePath): Exclude<Scalar, null> | undefined {
  const node = nodeAt(root, ...path);
  return node?.kind === 'scalar' && node.value !== null ? node.value : undefined;
}

export function textAt(root: TreeNode | undefined, ...path: TreePath): string | undefined {
  const value = scalarAt(root, ...path);
  return typeof value === 'string' ? value : undefined;
}

/** Entries of the map at a path in the file's order, without nulls; none if there is no map. */
export function entriesAt(root: TreeNode | undefined, ...path: TreePath): [string, MapEntry][] {
  const node = nodeAt(root, ...path);
  return node?.kind === 'map' ? [...node.entries].filter(([, entry]) => !isNull(entry.node)) : [];
}

export function itemsAt(root: TreeNode | undefined, ...path: TreePath): TreeNode[] {
  const node = nodeAt(root, ...path);
  return node?.kind === 'list' ? node.items : [];
}

/**
 * The place to report for a path: the value of a scalar, the key of a map or list, and for a missing value the key of
 * the map or list that would contain it.
 */
export function placeOf(root: TreeNode, path: TreePath): Position {
  let node = root;
  let place = root.place;
  for (const step of path) {
    const entry = node.kind === 'map' ? node.entries.get(String(step)) : undefined;
    const below = entry?.node ?? (node.kind === 'list' ? node.items[Number(step)] : undefined);
    if (!below) return place;
    place = entry && below.kind !== 'scalar' ? entry.key : below.place;
    node = below;
  }
  return place;
}

/** The place of the last key of a path; like `placeOf` if the key is missing. */
export function keyPlaceOf(root: TreeNode, path: TreePath): Position {
  const holder = nodeAt(root, ...path.slice(0, -1));
  const entry = holder?.kind === 'map' ? holder.entries.get(String(path.at(-1))) : undefined;
  return entry?.key ?? placeOf(root, path);
}

/** The path that a text names, as far as the tree contains it. */
export function pathNamed(root: TreeNode, text: string): TreePath {
  let path: TreePath = [];
  let node: TreeNode | undefined = root;
  while (node && node.kind !== 'scalar') {
    const steps: (string | number)[] =
      node.kind === 'map' ? [...node.entries.keys()] : [...node.items.keys()];
    const above: TreePath = path;
    const step = steps.find((one) => isWithin(text, pathText([...above, one])));
    if (step === undefined) return path;
    path = [...path, step];
    node = node.kind === 'map' ? node.entries.get(String(step))?.node : node.items[Number(step)];
  }
  return path;
}

/** The tree as plain data; map entries that are null are left out. */
export function plainValue(node: TreeNode): unknown {
  if (node.kind === 'scalar') return node.value;
  if (node.kind === 'list') return node.items.map(plainValue);
  const map: Record<string, unknown> = {};
  for (const [key, { node: value }] of node.entries) if (!isNull(value)) map[key] = plainValue(value);
  return map;
}

/** The word for a node in messages. */
export function nodeWord(node: TreeNode): string {
  if (node.kind !== 'scalar') return `a ${node.kind}`;
  return node.value === null ? 'nothing' : `a ${typeof node.value}`;
}

/** Keys that hold secrets, at any depth below them. */
const secretKey =
  /pass(?:word|wd|phrase)|secret|token|bearer|authorization|^headers$|api_?key|access_?key|private_?key|^jwt$|^key_?data$|^connect_?attributes$|^basic_?auth_?users$/i;

/** Keys that contain maps with secrets: a text in the place of such a map is probably a secret. */
const holderKey = /^auth$|^basic$|^heartbeat$|credential|signature|^dsn$/i;
const mayHold = (step: string | number): boolean =>
  typeof step === 'string' && (secretKey.test(step) || holderKey.test(step));

/** Keys below a secret's key that name the place of the secret, and are not secret themselves. */
const referenceKeys: ReadonlySet<string> = new Set(['env', 'file', 'type', 'username', 'region', 'service']);

/** Whether the value at this path is a secret. */
export function isSecret(path: TreePath): boolean {
  return path.some((step) => typeof step === 'string' && secretKey.test(step));
}

/** Whether messages leave out the value at this path, because it is a secret or in a place where somebody may write one. */
export const mayBeSecret = (path: TreePath): boolean => path.some(mayHold);

/** Whether one of these keys holds secrets, so that an unknown key beside it may be one. */
export const haveSecret = (keys: readonly string[]): boolean => keys.some(mayHold);

const shownStep = (step: string | number) => (typeof step === 'string' ? clipped(step) : step);

/** A path for messages. Unknown keys below the key of a secret are left out, because they may be the secret. */
export function shownPath(path: TreePath): string {
  const from = path.findIndex(mayHold);
  if (from < 0) return pathText(path.map(shownStep));
  // The names of users and of headers are not secret.
  const names = path.findIndex((step) => /users$|^headers$/i.test(String(step)));
  const shown = (step: string | number, index: number) => {
    const isName = names >= 0 && index > names;
    const isKnown = typeof step === 'number' || mayHold(step) || referenceKeys.has(step);
    return index <= from || isName || isKnown ? shownStep(step) : '…';
  };
  return pathText(path.map(shown));
}

/** Longer values are cut: they would hide the message. */
const longestShown = 120;

function shown(got: unknown): unknown {
  // JSON has no infinity and no NaN.
  if (typeof got === 'number') return Number.isFinite(got) ? got : String(got);
  return typeof got === 'string' ? clipped(withoutUrlSecrets(got)) : got;
}

const clipped = (text: string): string =>
  text.length > longestShown ? `${text.slice(0, longestShown)}…` : text;

export const placeText = ({ file, line, column }: Position): string => `${file}:${line}:${column}`;

/** `message` is `what is wrong; what is allowed`. A value at a secret path is left out. */
export function placedFault(place: Position, path: TreePath, message: string, got?: unknown): PlacedFault {
  const cut = message.indexOf('; ');
  const text = pathText(path);
  const where = shownPath(path);
  const fault: Fault = {
    where: where === '' ? placeText(place) : `${placeText(place)}: ${where}`,
    what: cut < 0 ? message : message.slice(0, cut),
  };
  if (got !== undefined && !mayBeSecret(path)) fault.got = shown(got);
  if (cut >= 0) fault.allowed = message.slice(cut + 2);
  return { ...fault, place, path: mayBeSecret(path) ? where : text };
}

/** This is a string, which the build escapes: with one such character in a regular expression the bundle takes twice its memory. */
const typographicQuotes = '“”„‘’«»';

/** What was probably meant by a text that is wrong in its place. */
function likelySlip(text: string): string | undefined {
  if (text !== '' && [text[0]!, text.at(-1)!].some((end) => typographicQuotes.includes(end)))
    return 'replace the typographic quotes with plain ones';
  const [, name] = /^\$([A-Za-z_]\w*)$/.exec(text) ?? [];
  return name && `write \${${name}} for an environment variable`;
}

/** A fault of the value at a path; it includes the value if that is a scalar. */
export function faultAt(root: TreeNode, path: TreePath, message: string): PlacedFault {
  const node = nodeAt(root, ...path);
  const got = node?.kind === 'scalar' ? (node.written ?? node.value) : undefined;
  const hint = typeof got === 'string' && !mayBeSecret(path) ? likelySlip(got) : undefined;
  const text = hint === undefined ? message : `${message.split('; ')[0]}; ${hint}`;
  return placedFault(placeOf(root, path), path, text, got);
}
