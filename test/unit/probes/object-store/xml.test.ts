import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readXml, type XmlElement } from '../../../../src/probes/object-store/answers.ts';

const leaf = (name: string, text: string): XmlElement => ({ name, text, children: [] });
/** An element without the fields that only the reader uses. */
const bare = ({ name, text, children }: XmlElement): XmlElement => ({
  name,
  text,
  children: children.map(bare),
});

describe('read', () => {
  test.each<[string, string, XmlElement]>([
    ['text', '<a>b</a>', leaf('a', 'b')],
    ['an empty element', '<a/>', leaf('a', '')],
    [
      'a declaration, comments, blanks',
      '\ufeff<?xml version="1.0"?>\n<!-- <b> --><a>1</a> \n',
      leaf('a', '1'),
    ],
    ['attributes', '<a x="1" y = \'>\'>b</a >', leaf('a', 'b')],
    ['a prefix', '<s3:a xmlns:s3="u">b</s3:a>', leaf('a', 'b')],
    ['entities', '<a>&lt;&gt;&amp;&quot;&apos;&#65;&#x1F600;</a>', leaf('a', '<>&"\'A😀')],
    ['what is escaped twice once', '<a>&amp;lt;</a>', leaf('a', '&lt;')],
    ['character data as it is', '<a><![CDATA[<b>&amp;]]></a>', leaf('a', '<b>&amp;')],
    [
      'one below the other',
      '<a><b>1</b><b>2</b></a>',
      { name: 'a', text: '', children: [leaf('b', '1'), leaf('b', '2')] },
    ],
  ])('%s', (_, text, expected) => expect(bare(readXml(text))).toEqual(expected));

  test('whatever stands in a text', () => {
    const escaped = (text: string) =>
      [...text].map((sign) => (/\w/.test(sign) ? sign : `&#${sign.codePointAt(0)};`)).join('');
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme' })), (texts) => {
        const document = `<a>${texts.map((text) => `<b>${escaped(text)}</b>`).join('')}</a>`;
        expect(readXml(document).children.map(({ text }) => text)).toEqual(texts);
      }),
    );
  });
});

describe('refused', () => {
  test.each([
    ['nothing', ''],
    ['text alone', 'hello'],
    ['two documents', '<a/><b/>'],
    ['text after the end', '<a/>b'],
    ['an element that is not ended', '<a><b></b>'],
    ['elements that cross', '<a><b></a></b>'],
    ['an end without beginning', '</a>'],
    ['a lone <', '<a> < </a>'],
    ['a lone &', '<a> & </a>'],
    ['an unknown entity', '<a>&nbsp;</a>'],
    ['an inherited property as entity', '<a>&constructor;</a>'],
    ['half a pair', '<a>&#xD800;</a>'],
    ['no character', '<a>&#x110000;</a>'],
    ['a document type', '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'],
    ['an attribute without quotes', '<a b=c></a>'],
    ['an open comment', '<a/><!-- '],
    ['a million elements', `<a>${'<b/>'.repeat(1e6)}</a>`],
    ['a million attributes', `<a ${'b="" '.repeat(1e6)}></a>`],
    ['a page of HTML', '<!doctype html><html><body>Sign in<br></body></html>'],
    ['a thousand levels', '<a>'.repeat(1000) + '</a>'.repeat(1000)],
  ])('%s', (_, text) => expect(() => readXml(text)).toThrow(SyntaxError));

  test('any text ends as an element or as a SyntaxError', () => {
    const part = fc.oneof(
      fc.constantFrom('<a>', '</a>', '<a', '>', '&', '&lt;', '<![CDATA[', ']]>', '<!--', '"', ' '),
      fc.string(),
    );
    fc.assert(
      fc.property(fc.array(part), (parts) => {
        try {
          readXml(parts.join(''));
        } catch (error) {
          expect(error).toBeInstanceOf(SyntaxError);
        }
      }),
    );
  });
});
