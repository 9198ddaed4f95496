import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  Scalar,
  visit,
  type YAMLMap,
} from 'yaml';
import {
  type MapNode,
  mayBeSecret,
  nodeWord,
  placedFault,
  type Scalar as ScalarValue,
  type TreeNode,
  type TreePath,
} from './tree.ts';
import type { PlacedFault, Position } from './types.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** A scalar with its variables expanded, or the fault. */
type Expanded = { text: string } | { fault: string };

const variable = /\$\$\{|\$\{([^{}]*)\}?/g;
const named = /^([A-Za-z_]\w*)(?::([\s\S]*))?$/;

/**
 * Expands variables in a scalar's text: `${NAME}`, `${NAME:default}`; `$${` is a plain `${`. Values are not expanded again.
 * An unset variable without a default is a fault.
 */
function expand(text: string, env: Environment): Expanded {
  let fault: string | undefined;
  const expanded = text.replace(variable, (found, inside: string | undefined) => {
    if (found === '$${') return '${';
    const [, name, otherwise] = named.exec(inside ?? '') ?? [];
    if (!found.endsWith('}') || name === undefined) {
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of the message
      fault ??= 'not a variable; use ${NAME}, ${NAME:default}, or $${ for a plain ${';
      return '';
    }
    const value = env[name] ?? otherwise;
    if (value === undefined)
      fault ??= `environment variable ${name} is not set; set it, or write \${${name}:default}`;
    return value ?? '';
  });
  return fault === undefined ? { text: expanded } : { fault };
}

/** The value of a plain scalar in YAML 1.2's core schema. Quotes in the expanded text are interpreted. */
function resolvePlain(text: string): ScalarValue {
  const trimmed = text.trim();
  if (/^(?:|~|null|Null|NULL)$/.test(trimmed)) return null;
  if (/^(?:true|True|TRUE)$/.test(trimmed)) return true;
  if (/^(?:false|False|FALSE)$/.test(trimmed)) return false;
  if (/^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/.test(trimmed)) return Number(trimmed);
  if (/^0(?:o[0-7]+|x[0-9a-fA-F]+)$/.test(trimmed)) return Number(trimmed);
  const [, quoted] = /^(?:"([^"\\]*)"|'[^']*')$/.exec(trimmed) ?? [];
  if (quoted !== undefined) return quoted;
  return /^'[^']*'$/.test(trimmed) ? trimmed.slice(1, -1) : text;
}

/** Bounds far above any real configuration. */
const maxDepth = 64;
const maxNodes = 200_000;

/** State while a document is converted. */
interface Walk {
  at: (offset: number) => Position;
  env: Environment;
  faults: PlacedFault[];
  /** The node that each alias stands for. */
  aliasTargets: ReadonlyMap<Alias, unknown>;
  /** The number of values so far; a value behind aliases counts each time. */
  nodes: number;
}

/** The document as a tree, with aliases and merge keys resolved and variables expanded; adds faults. */
function walkDocument(
  document: Document.Parsed,
  at: (offset: number) => Position,
  env: Environment,
  faults: PlacedFault[],
): MapNode | undefined {
  const walk: Walk = { at, env, faults, aliasTargets: aliasTargetsOf(document), nodes: 0 };
  const top = at(0);
  const root = walkNode(walk, document.contents, [], startOf(walk, document.contents, top));
  if (!root || root.kind === 'map') return root;
  if (root.kind === 'scalar' && root.value === null) return { kind: 'map', place: top, entries: new Map() };
  return refuse(walk, root.place, [], `${nodeWord(root)}, not a map; use keys and values`);
}

/** The nodes of all aliases, found in one pass. An alias stands for the nearest anchor of its name above it. */
function aliasTargetsOf(document: Document.Parsed): ReadonlyMap<Alias, unknown> {
  const anchors = new Map<string, unknown>();
  const aliasTargets = new Map<Alias, unknown>();
  visit(document, {
    Node(_, node) {
      if (isAlias(node)) aliasTargets.set(node, anchors.get(node.source));
      else if (node.anchor) anchors.set(node.anchor, node);
    },
  });
  return aliasTargets;
}

function refuse(walk: Walk, place: Position, path: TreePath, message: string, got?: unknown): undefined {
  walk.faults.push(placedFault(place, path, message, got));
  return undefined;
}

function startOf({ at }: Walk, node: unknown, otherwise: Position): Position {
  const range = (node as { range?: readonly number[] | null } | null | undefined)?.range;
  return range ? at(range[0]!) : otherwise;
}

function walkNode(walk: Walk, given: unknown, path: TreePath, place: Position): TreeNode | undefined {
  if (path.length > maxDepth)
    return refuse(walk, place, [], `nested too deeply; use at most ${maxDepth} levels`);
  if (++walk.nodes > maxNodes) {
    if (walk.nodes === maxNodes + 1) refuse(walk, place, [], `too many values; use at most ${maxNodes}`);
    return undefined;
  }
  const node = isAlias(given) ? walk.aliasTargets.get(given) : given;
  if (isAlias(given) && !node) {
    const message = 'no such anchor above; put a text that begins with * in quotes';
    return refuse(walk, place, path, message, `*${given.source}`);
  }
  if (isMap(node)) return walkMap(walk, node, path, place);
  if (isScalar(node)) return walkScalar(walk, node, path, place);
  if (!isSeq(node)) return { kind: 'scalar', place, value: null };
  const items = node.items.map((item, index) =>
    walkNode(walk, item, [...path, index], startOf(walk, item, place)),
  );
  return { kind: 'list', place, items: items.filter((item) => item !== undefined) };
}

const nulInside = 'a NUL character, which no path and no name can have; remove it';

function walkScalar(
  walk: Walk,
  { value, source, type }: Scalar,
  path: TreePath,
  place: Position,
): TreeNode | undefined {
  if (typeof value === 'string' && value.includes('\0')) return refuse(walk, place, path, nulInside, value);
  if (typeof value === 'string' && value.includes('${')) {
    const expanded = expand(value, walk.env);
    if ('fault' in expanded) {
      // The text around the variable, and even its name, may be part of a secret.
      const isPart = mayBeSecret(path) && !/^\$\{[A-Za-z_]\w*(?::[^{}]*)?\}$/.test(value);
      return refuse(
        walk,
        place,
        path,
        isPart ? 'a variable in it is not set; use {env: NAME}' : expanded.fault,
        value,
      );
    }
    const meant = type === Scalar.PLAIN ? resolvePlain(expanded.text) : expanded.text;
    return { kind: 'scalar', place, value: meant, written: value };
  }
  if (value === null || ['string', 'number', 'boolean'].includes(typeof value)) {
    return { kind: 'scalar', place, value: value as string | number | boolean | null };
  }
  return refuse(walk, place, path, 'not a value that a configuration can have', source);
}

function walkMap(walk: Walk, map: YAMLMap, path: TreePath, place: Position): MapNode {
  const result: MapNode = { kind: 'map', place, entries: new Map() };
  const merged: MapNode[] = [];
  const first = new Map<string, Position>();
  for (const pair of map.items) {
    const key = isAlias(pair.key) ? walk.aliasTargets.get(pair.key) : pair.key;
    const keyPlace = startOf(walk, pair.key, place);
    const name = keyName(walk, key, path, keyPlace);
    if (name === undefined) continue;
    const before = first.get(name);
    if (before) {
      refuse(walk, keyPlace, [...path, name], `duplicate key; remove it here or in line ${before.line}`);
      continue;
    }
    first.set(name, keyPlace);
    if (name === '<<' && isScalar(key) && key.type === Scalar.PLAIN) {
      merged.push(...mergedMaps(walk, pair.value, path, keyPlace));
      continue;
    }
    const node = walkNode(walk, pair.value, [...path, name], startOf(walk, pair.value, keyPlace));
    if (node) result.entries.set(name, { key: keyPlace, node });
  }
  for (const other of merged) {
    for (const [name, entry] of other.entries) if (!result.entries.has(name)) result.entries.set(name, entry);
  }
  return result;
}

/** The text of a key, as it is written if the key is not a string: `1` and `true` are words, too. */
function nameOf({ value, source }: Scalar): string {
  if (typeof value === 'string') return value;
  return value === null ? '' : String(source ?? value);
}

function keyName(walk: Walk, key: unknown, path: TreePath, place: Position): string | undefined {
  if (isMap(key) && key.flow && path.length > 0) {
    const message =
      'a template that was not filled in; fill it in, or put a text that begins with {{ in quotes';
    return refuse(walk, place, path, message);
  }
  if (!isScalar(key)) return refuse(walk, place, path, 'a key that is not text; use a word');
  const name = nameOf(key);
  if (/[\u00a0\u2007\u200b\u202f\ufeff]/.test(name)) {
    const message =
      'a special space, such as a no-break space, which YAML reads as part of the key; replace it with a plain space';
    return refuse(walk, place, path, message);
  }
  if (name.includes('\0')) return refuse(walk, place, path, nulInside, name);
  if (name !== '__proto__' && name !== '') return name;
  return refuse(walk, place, path, 'not usable as a key', name);
}

function mergedMaps(walk: Walk, value: unknown, path: TreePath, place: Position): MapNode[] {
  const node = walkNode(walk, value, [...path, '<<'], place);
  const maps = node?.kind === 'list' ? node.items : node ? [node] : [];
  return maps.filter((map): map is MapNode => {
    if (map.kind === 'map') return true;
    refuse(walk, place, path, `${nodeWord(map)} cannot be merged; use a map or a list of maps after <<`);
    return false;
  });
}

interface Read {
  /** The tree; missing if the text is not YAML or not a map. */
  tree?: MapNode;
  faults: PlacedFault[];
}

const tooDeep = `nested too deeply; use at most ${maxDepth} levels`;

/** Better messages for some of the parser's errors. */
const yamlFaults: Readonly<Record<string, string>> = {
  TAB_AS_INDENT: 'a tab as indentation; use spaces',
  MULTIPLE_DOCS: 'more than one document; keep one in a file',
  BLOCK_AS_IMPLICIT_KEY: 'a colon and a space inside a text; put the text in quotes',
  MULTILINE_IMPLICIT_KEY:
    'no colon after the key; write key: value, or put a text of several lines in quotes',
  BAD_INDENT: 'indented differently from the keys beside it; give all keys of one map the same indentation',
  BLOCK_IN_FLOW: 'a comma is missing between two entries; put a comma between them',
  BAD_SCALAR_START: 'a text that begins with a reserved character; put the text in quotes',
  BAD_DQ_ESCAPE: 'a backslash that begins no escape of YAML; write two, or use single quotes',
  RESOURCE_EXHAUSTION: tooDeep,
};

/** Parses YAML 1.2 text into a tree with places. Never throws. */
export function readYaml(text: string, file: string, env: Environment): Read {
  const lines = new LineCounter();
  const at = (offset: number): Position => {
    const { line, col } = lines.linePos(Math.min(offset, text.length));
    return { file, line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  let document: Document.Parsed;
  try {
    document = parseDocument(text, {
      lineCounter: lines,
      prettyErrors: false,
      version: '1.2',
      logLevel: 'error',
      // Duplicate keys are found while the document is walked, where the whole path of the key is known.
      uniqueKeys: false,
    });
  } catch {
    // The parser is recursive, and the document overflowed its stack.
    return { faults: [placedFault(at(0), [], tooDeep)] };
  }
  const faults = parserFaults([...document.errors, ...document.warnings], document, at, text);
  if (document.errors.length > 0) return { faults };
  const tree = walkDocument(document, at, env, faults);
  return { tree, faults };
}

const deeper =
  'the next line is indented deeper, although this key has its value on the same line; give keys of one map the same indentation, or put a text of several lines in quotes';

/** The parser's errors in plain words. Only the first error of each line is reported, because the others follow from it. */
function parserFaults(
  errors: readonly (Document.Parsed['errors'][number] | Document.Parsed['warnings'][number])[],
  document: Document.Parsed,
  at: (offset: number) => Position,
  text: string,
): PlacedFault[] {
  // The parser loses its way at such a place, so that its other errors follow from it.
  const known = errors.find(({ pos: [from] }) => faultInText(text, from) !== undefined);
  if (known) return [placedFault(at(known.pos[0]), [], faultInText(text, known.pos[0])!)];
  const reportedLines = new Set<number>();
  const isKnown = ({ code }: { code: string }) => Number(Object.hasOwn(yamlFaults, code));
  return [...errors]
    .sort((one, other) => isKnown(other) - isKnown(one))
    .flatMap(({ code, message, pos: [from] }) => {
      const quote = code === 'MISSING_CHAR' ? lastQuote(document, from) : undefined;
      const place = at(quote ?? from);
      if (reportedLines.has(place.line)) return [];
      reportedLines.add(place.line);
      if (quote !== undefined) return placedFault(place, [], 'a quote that is not closed; close it');
      const isFollowed = errors.some(
        (other) => other.code === 'MULTILINE_IMPLICIT_KEY' && other.pos[0] === from,
      );
      if (code === 'BLOCK_AS_IMPLICIT_KEY' && isFollowed) return placedFault(place, [], deeper);
      const [, closing] = /end with (?:a )?([\]}])/.exec(message) ?? [];
      if (closing !== undefined) {
        const opening = closing === '}' ? '{' : '[';
        return placedFault(place, [], `a ${opening} above is not closed; close it with ${closing}`);
      }
      return placedFault(place, [], yamlFaults[code] ?? `not YAML, ${oneLine(message)}`);
    });
}

/** What is wrong at an error of the parser, if the text shows it. */
function faultInText(text: string, offset: number): string | undefined {
  if (text.startsWith('${', offset - 1))
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of the message
    return 'a variable between braces or brackets; put it in quotes, such as "${NAME}"';
  const isMarker = /(?:^|\n)(?:<{7}|={7}|>{7})[^\n]*$/.test(
    text.slice(Math.max(0, offset - 200), offset + 7),
  );
  return isMarker ? 'a marker of a merge conflict; resolve the conflict' : undefined;
}

/** The offset of the last quoted text that reaches `end`. */
function lastQuote(document: Document.Parsed, end: number): number | undefined {
  let start: number | undefined;
  visit(document, {
    Scalar(_, { type, range }) {
      const isQuoted = type === Scalar.QUOTE_DOUBLE || type === Scalar.QUOTE_SINGLE;
      if (isQuoted && range && range[1] >= end) start = range[0];
    },
  });
  return start;
}

function oneLine(message: string): string {
  // After a colon the parser quotes the text, which may be a secret.
  const line = message.split(/[\n:]/)[0]!.trim().slice(0, 160).replaceAll(';', ',');
  return line.slice(0, 1).toLowerCase() + line.slice(1);
}
