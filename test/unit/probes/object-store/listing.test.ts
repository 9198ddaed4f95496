import { describe, expect, test } from 'vitest';
import { readPage } from '../../../../src/probes/object-store/answers.ts';
import { ProbeError } from '../../../../src/probes/probe.ts';

const page = (inner: string) => Buffer.from(`<ListBucketResult>${inner}</ListBucketResult>`);
const object = (key: string, modified = '2026-01-02T03:04:05.678Z', size = '12') =>
  `<Contents><Key>${key}</Key><LastModified>${modified}</LastModified><Size>${size}</Size></Contents>`;
const whole = '<IsTruncated>false</IsTruncated>';

describe('a page', () => {
  test('as stores print it', () => {
    const text = `<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
  <Name>bucket</Name>
  <Prefix/>
  <KeyCount>1</KeyCount>
  <MaxKeys>1000</MaxKeys>
  <IsTruncated>false</IsTruncated>
  <Contents>
    <Key>history/1_2.history</Key>
    <LastModified>2026-02-03T04:05:06.000Z</LastModified>
    <ETag>"9e107d9d372bb6826bd81d3542a419d6"</ETag>
    <Size>1024</Size>
    <StorageClass>STANDARD</StorageClass>
  </Contents>
</ListBucketResult>`;
    expect(readPage(Buffer.from(text))).toEqual({
      objects: [
        {
          ...{ key: 'history/1_2.history', sizeBytes: 1024, lastModifiedMs: Date.UTC(2026, 1, 3, 4, 5, 6) },
          md5: '9e107d9d372bb6826bd81d3542a419d6',
        },
      ],
    });
  });
  test('an object that was uploaded in parts states no checksum', () => {
    const parts = object('a').replace('</Key>', '</Key><ETag>"9e107d9d372bb6826bd81d3542a419d6-3"</ETag>');
    expect(readPage(page(whole + parts)).objects[0]).not.toHaveProperty('md5');
  });
  test('that goes on', () => {
    const more = '<IsTruncated>true</IsTruncated><NextContinuationToken>1ueGc=&amp;</NextContinuationToken>';
    expect(readPage(page(more)).continuation).toBe('1ueGc=&');
  });
  test('with keys that are encoded', () => {
    const text = page(`${whole}<EncodingType>url</EncodingType>${object('a%2Fb+c%2B%C3%A9%08')}`);
    expect(readPage(text).objects[0]!.key).toBe('a/b c+é\b');
  });
  test('with keys that are not', () => {
    expect(readPage(page(`${whole}${object(' a+b%20&lt; ')}`)).objects[0]!.key).toBe(' a+b%20< ');
  });
});

describe('no page', () => {
  test.each([
    ['not UTF-8', Buffer.from([0x3c, 0xff]), 'not UTF-8'],
    ['cut off', Buffer.from('<ListBucketResult><IsTruncated>'), '<IsTruncated> is not closed'],
    ['another document', Buffer.from('<ListAllMyBucketsResult/>'), '<ListAllMyBucketsResult> instead of'],
    ['without an end', page(object('a')), 'no <IsTruncated>'],
    ['without a continuation', page('<IsTruncated>true</IsTruncated>'), 'without <NextContinuationToken>'],
    ['a key missing', page(whole + object('')), 'an object without <Key>'],
    ['a time of words', page(whole + object('a', 'yesterday')), '<LastModified> is not a time: yesterday'],
    [
      'a time that is none',
      page(whole + object('a', '2026-13-45T00:00:00Z')),
      '<LastModified> is not a time',
    ],
    ['a size of words', page(whole + object('a', undefined, 'big')), '<Size> is not a number: big'],
    ['a key badly encoded', page(`${whole}<EncodingType>url</EncodingType>${object('%zz')}`), 'not encoded'],
  ])('%s', (_, body, message) => {
    const read = () => readPage(body);
    expect(read).toThrow(ProbeError);
    expect(read).toThrow(message);
    expect(read).toThrow(expect.objectContaining({ reason: 'invalid_answer' }));
  });
});
