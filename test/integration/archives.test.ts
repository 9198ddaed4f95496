import { X509Certificate } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import * as files from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { createDirectoryWalk, maxDepth } from '../../src/probes/archival/directory-walk.ts';
import type { Finding } from '../../src/probes/probe.ts';
import { manualClock } from '../clock.ts';
import { newFolder } from '../folder.ts';
import {
  environmentOf,
  keys,
  type ObjectStoreServer,
  openArchive,
  openObjectStore,
} from '../object-store.ts';
import { makeCertificates } from './pull/certificates.ts';

const newest = ({ gauges }: Finding) =>
  gauges?.map(({ name, labels, value }) => [name, labels.scheme, value]);
const gauge = 'svc_archival_newest_object_timestamp_seconds';
const seconds = (time: string) => Date.parse(time) / 1000;

describe('a file archive', () => {
  let directory: string;
  beforeEach(() => {
    directory = newFolder();
  });
  const write = (path: string, time: string): void => {
    mkdirSync(join(directory, path, '..'), { recursive: true });
    writeFileSync(join(directory, path), 'x');
    utimesSync(join(directory, path), new Date(time), new Date(time));
  };
  const open = async () => {
    const archive = await openArchive({ uri: `${pathToFileURL(directory).href}/` });
    onTestFinished(archive.close);
    return archive;
  };

  test('is there, writable, and its newest file lies anywhere in it', async () => {
    write('a.history', '2026-01-02T03:04:05Z');
    write('domain/b/c.visibility', '2026-03-04T05:06:07.500Z');
    write('domain/d.visibility', '2026-02-03T04:05:06Z');
    const { row, check } = await open();
    expect(row.shows.up).toEqual({ name: 'svc_archival_up', labels: { archive: 'history', scheme: 'file' } });
    const finding = await check();
    expect(finding.reason).toBeUndefined();
    expect(newest(finding)).toEqual([[gauge, 'file', seconds('2026-03-04T05:06:07.500Z')]]);
    expect(finding.msg).toMatch(
      /^writable, [\d.]+ GiB free; newest file from 2026-03-04T05:06:07\.500Z; it can be read back$/,
    );
    expect(finding.details).toMatchObject({ files: 3, complete: true });
  });

  test('may be empty', async () => {
    const finding = await (await open()).check();
    expect(finding).toMatchObject({ gauges: [], msg: expect.stringContaining('no file yet') });
    expect(finding.reason).toBeUndefined();
  });

  test('does not follow links', async () => {
    write('a.history', '2026-01-02T03:04:05Z');
    symlinkSync('.', join(directory, 'loop'));
    symlinkSync('/etc/passwd', join(directory, 'passwd'));
    expect(newest(await (await open()).check())).toEqual([[gauge, 'file', seconds('2026-01-02T03:04:05Z')]]);
  });

  test('deeper than it is looked through: the newest file is not known', async () => {
    write('a.history', '2026-01-02T03:04:05Z');
    write(`${'1/'.repeat(maxDepth + 1)}b.history`, '2026-02-03T04:05:06Z');
    const finding = await (await open()).check();
    expect(finding.reason).toBeUndefined();
    expect(finding.gauges).toEqual([]);
    expect(finding.msg).toContain(
      'newest file seen from 2026-01-02T03:04:05.000Z; not all of it was searched: it has directories more than',
    );
    expect(finding.details).toMatchObject({ complete: false });
  });

  test.each([1, 2, 3, 5, 1000])('of any size, %i entries at a time', async (maxEntries) => {
    for (const name of ['a', 'b/c', 'b/d', 'b/e/f', 'g']) write(`${name}.history`, '2026-01-02T03:04:05Z');
    write('b/e/newest.history', '2026-05-06T07:08:09Z');
    const walk = createDirectoryWalk(directory, { maxEntries }, { disk: files, clock: manualClock() });
    onTestFinished(() => walk.close());
    let polls = 0;
    for (; walk.last === undefined; polls++) {
      expect(polls).toBeLessThan(100);
      await walk.advance(new AbortController().signal);
    }
    expect(walk.last).toMatchObject({
      files: 6,
      newestMs: Date.parse('2026-05-06T07:08:09Z'),
      newest: { path: join(directory, 'b/e/newest.history') },
    });
    if (maxEntries === 1) expect(polls).toBeGreaterThan(6);
  });

  test('that is only read leaves nothing behind either', async () => {
    const { check } = await openArchive({ uri: pathToFileURL(directory).href, status: 'paused' });
    expect((await check()).msg).toMatch(/^readable, /);
    rmSync(directory, { recursive: true });
    expect((await check()).reason).toBe('not_found');
  });
});

describe('an object store', () => {
  let store: ObjectStoreServer;
  const clock = manualClock();
  const open = async (options: Parameters<typeof openObjectStore>[0] = {}) => {
    store = await openObjectStore({ clock, ...options });
    onTestFinished(() => store.close());
    return store;
  };

  test.each(['s3', 'gs'])('of scheme %s answers a signed request', async (scheme) => {
    await open();
    store.objects.set('history/b', '2026-01-01T00:00:01.000Z');
    store.objects.set('history/a', '2026-01-03T00:00:00.000Z');
    store.objects.set('history/', '2026-01-09T00:00:00.000Z');
    store.objects.set('other/a', '2026-01-09T00:00:00.000Z');
    const { check } = await openArchive({ uri: `${scheme}://archive/history/`, endpoint: store.url, clock });
    const finding = await check();
    expect(finding.reason).toBeUndefined();
    expect(newest(finding)).toEqual([[gauge, scheme, seconds('2026-01-03T00:00:00Z')]]);
    expect(finding.msg).toBe('readable, writing is not tested; newest object from 2026-01-03T00:00:00.000Z');
    expect(Object.keys(finding.phasesMs!)).toEqual(['resolve', 'connect', 'first_byte', 'body']);
    expect(store.asked).toEqual(['/archive?list-type=2&max-keys=1000&encoding-type=url&prefix=history%2F']);
  });

  test.each([true, false])('lists odd names page by page (encodes: %s)', async (encodes) => {
    await open({ pageSize: 2, encodes });
    const prefix = "it's (a) prefix*!+é/";
    const names = ['%2F', 'a b', 'a+b', 'a&b=c', 'ü/ö', '日本', '<x>"\'', '~._-'];
    for (const [index, name] of names.entries()) {
      store.objects.set(`${prefix}${name}`, `2026-01-0${index + 1}T00:00:00.000Z`);
    }
    const uri = `s3://archive/${encodeURIComponent(prefix.slice(0, -1))}`;
    const finding = await (await openArchive({ uri, endpoint: store.url, clock })).check();
    expect(finding.details).toEqual({ pages: 4, objects: 8, complete: true });
    expect(newest(finding)).toEqual([[gauge, 's3', seconds('2026-01-08T00:00:00Z')]]);
  });

  test('with more pages than one check asks for: the next checks go on, across restarts', async () => {
    await open({ pageSize: 1 });
    for (let i = 10; i < 35; i++) store.objects.set(`h/${i} +`, `2026-01-01T00:00:${i}.000Z`);
    store.objects.set('h/31 +', '2026-02-02T00:00:00.000Z');
    const runCheck = async (recalled: unknown) => {
      const { check } = await openArchive({ uri: 's3://archive/h/', endpoint: store.url, clock });
      return check(undefined, JSON.parse(JSON.stringify(recalled ?? null)));
    };
    const first = await runCheck(undefined);
    expect(first.gauges).toEqual([]);
    expect(first.msg).toContain('newest object seen from 2026-01-01T00:00:19.000Z');
    const second = await runCheck(first.remember);
    expect(second.gauges).toEqual([]);
    const third = await runCheck(second.remember);
    expect(newest(third)).toEqual([[gauge, 's3', seconds('2026-02-02T00:00:00Z')]]);
    expect(third.details).toEqual({ pages: 5, objects: 5, complete: true });
    const fourth = await runCheck(third.remember);
    expect(newest(fourth)).toEqual([[gauge, 's3', seconds('2026-02-02T00:00:00Z')]]);
    expect(fourth.msg).toContain('newest object from 2026-02-02T00:00:00.000Z, or later');
    expect(store.asked.filter((path) => !/start-after|continuation/.test(path))).toHaveLength(2);
  });

  test('takes temporary credentials, read again at each check', async () => {
    await open({ keys: { ...keys, sessionToken: 'token//+=' } });
    const env: Record<string, string> = { ...environmentOf(keys) };
    const { check } = await openArchive({ uri: 's3://archive/', endpoint: store.url, clock, env });
    expect((await check()).reason).toBe('credentials');
    env.AWS_SESSION_TOKEN = 'token//+=';
    expect((await check()).reason).toBeUndefined();
  });

  test('is asked without a signature when there are no credentials', async () => {
    await open();
    const env = { HOME: '/nowhere' };
    const { check } = await openArchive({ uri: 's3://archive/', endpoint: store.url, clock, env });
    expect(await check()).toMatchObject({
      reason: 'denied',
      msg: expect.stringContaining(
        'the request was not signed: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
      ),
    });
    const signatures: unknown[] = [];
    store.answer((request, response) => {
      signatures.push(request.headers.authorization);
      response.end('<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>');
    });
    expect((await check()).msg).toBe('readable, writing is not tested; no object yet');
    expect(signatures).toEqual([undefined]);
  });

  test('is written only where that is asked for: put, read and deleted', async () => {
    await open();
    store.objects.set('history/a', '2026-01-03T00:00:00.000Z');
    const setting = { uri: 's3://archive/history/', endpoint: store.url, clock };
    expect((await (await openArchive(setting)).check()).reason).toBeUndefined();
    expect(store.changed).toEqual([]);
    const finding = await (await openArchive({ ...setting, writeCheck: true })).check();
    expect(finding.reason).toBeUndefined();
    expect(finding.msg).toBe('writable; newest object from 2026-01-03T00:00:00.000Z');
    const key = expect.stringMatching(/^\w+ history\/\.svc-agent-write-check-[0-9a-f]{12}$/);
    expect(store.changed).toEqual([key, key, key]);
    expect(store.changed.map((line) => line.split(' ')[0])).toEqual(['PUT', 'GET', 'DELETE']);
    expect(store.contents.size).toBe(0);
  });

  test('that refuses the test object is not writable', async () => {
    await open({ isReadOnly: true });
    const setting = { uri: 's3://archive/history/', endpoint: store.url, clock, writeCheck: true };
    expect(await (await openArchive(setting)).check()).toMatchObject({
      reason: 'not_writable',
      msg: expect.stringContaining(
        'writing an object failed: the object store refused: status 403, AccessDenied',
      ),
    });
  });

  test('may stand below a path', async () => {
    await open();
    store.answer((_, response) => {
      response.end('<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>');
    });
    const endpoint = `${store.url}/objects/`;
    const { check } = await openArchive({ uri: 's3://archive/', endpoint, clock });
    expect((await check()).reason).toBeUndefined();
    expect(store.asked).toEqual(['/objects/archive?list-type=2&max-keys=1000&encoding-type=url']);
  });
});

describe('an object store behind TLS', () => {
  const certificates = makeCertificates();

  test('is trusted by AWS_CA_BUNDLE, and the end of its certificate is told', async () => {
    const authority = certificates.authority('authority');
    const { cert, key } = certificates.signed('store', authority);
    const clock = manualClock();
    const tls = { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') };
    const store = await openObjectStore({ clock, tls });
    onTestFinished(() => store.close());
    const setting = { uri: 's3://archive/', endpoint: store.url, clock };
    const untrusted = await (await openArchive(setting)).check();
    expect(untrusted.reason).toBe('tls_untrusted');
    const env = { ...environmentOf(keys), AWS_CA_BUNDLE: authority.cert };
    const finding = await (await openArchive({ ...setting, env })).check();
    expect(finding.reason).toBeUndefined();
    const ends = [cert, authority.cert].map((file) =>
      Date.parse(new X509Certificate(readFileSync(file)).validTo),
    );
    expect(finding.tlsNotAfterMs).toBe(Math.min(...ends));
  });
});
