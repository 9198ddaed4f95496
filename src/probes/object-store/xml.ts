/** One element of a document: its name without namespace prefix, its children, and its text. */
export interface XmlElement {
  name: string;
  /** Its own text with entities replaced, whitespace included. */
  text: string;
  children: readonly XmlElement[];
}

interface OpenElement extends XmlElement {
  /** The name with its prefix, as in the end tag. */
  tag: string;
  children: XmlElement[];
}

const startTag = /<([A-Za-z_][\w.:-]*)(?:\s+[A-Za-z_][\w.:-]*\s*=\s*(?:"[^"<]*"|'[^'<]*')){0,32}\s*(\/?)>/y;
const endTag = /<\/([A-Za-z_][\w.:-]*)\s*>/y;
/** Start and end of markup that contains neither elements nor text to decode. */
const sections = [
  ['<!--', '-->'],
  ['<![CDATA[', ']]>'],
  ['<?', '?>'],
] as const;

const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };
const deepest = 32;
/** Ten times a full page. */
const mostElements = 100_000;

/**
 * Reads one XML document of an object store: elements and text; ignores attributes, comments and processing
 * instructions. Throws SyntaxError for a document that is not well-formed, and for a document type, which could define
 * entities.
 */
export function readXml(text: string): XmlElement {
  const top: OpenElement = { name: '', tag: '', text: '', children: [] };
  const open = [top];
  let at = text.startsWith('\ufeff') ? 1 : 0;
  let tags = 0;
  while (at < text.length) {
    const next = text.indexOf('<', at);
    const end = next < 0 ? text.length : next;
    if (end > at) open.at(-1)!.text += decoded(text.slice(at, end));
    at = next < 0 ? end : takeMarkup(text, next, open);
    if (++tags > 2 * mostElements) throw new SyntaxError(`more than ${mostElements} elements`);
  }
  const [root] = top.children;
  if (open.length > 1) throw new SyntaxError(`<${open.at(-1)!.tag}> is not closed`);
  if (!root || top.children.length > 1 || top.text.trim() !== '')
    throw new SyntaxError('not a single element');
  return root;
}

/** Reads one tag or section; returns its end. */
function takeMarkup(text: string, at: number, open: OpenElement[]): number {
  const here = open.at(-1)!;
  startTag.lastIndex = at;
  const start = startTag.exec(text);
  if (start) {
    if (open.length > deepest) throw new SyntaxError(`elements more than ${deepest} deep`);
    const tag = start[1]!;
    const element = { name: tag.slice(tag.indexOf(':') + 1), tag, text: '', children: [] };
    here.children.push(element);
    if (start[2] === '') open.push(element);
    return startTag.lastIndex;
  }
  endTag.lastIndex = at;
  const end = endTag.exec(text);
  if (end) {
    if (here.tag !== end[1]) throw new SyntaxError(`</${end[1]}> at character ${at} closes no open element`);
    open.pop();
    return endTag.lastIndex;
  }
  return takeSection(text, at, here);
}

function takeSection(text: string, at: number, here: OpenElement): number {
  const found = sections.find(([begin]) => text.startsWith(begin, at));
  const end = found ? text.indexOf(found[1], at + found[0].length) : -1;
  if (!found || end < 0) throw new SyntaxError(`not XML at character ${at}`);
  if (found[0] === '<![CDATA[') here.text += text.slice(at + found[0].length, end);
  return end + found[1].length;
}

/** The text of the first child with this name. */
export function childText({ children }: XmlElement, child: string): string | undefined {
  return children.find(({ name }) => name === child)?.text;
}

function decoded(text: string): string {
  if (!text.includes('&')) return text;
  return text.replace(/&(?:#x([\dA-Fa-f]{1,6})|#(\d{1,7})|(\w+));|&/g, (whole, hex, decimal, word) => {
    if (word !== undefined && Object.hasOwn(entities, word)) return entities[word]!;
    const point = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
    const isCharacter = point <= 0x10ffff && !(point >= 0xd800 && point <= 0xdfff);
    if (!isCharacter) throw new SyntaxError(`unknown entity ${whole}`);
    return String.fromCodePoint(point);
  });
}
