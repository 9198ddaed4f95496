import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import type { Log } from '../../src/core/ports.ts';
import { manualClock } from '../clock.ts';
import { type Answer, eachTarget, openScrape } from '../scrape.ts';

// Error pages and redirects repeat the request. Neither the page nor the log shows its secrets.

const target = eachTarget();
const password = 'pass/word"1';
const said = ({ url, headers: { authorization = '' } }: IncomingMessage): string =>
  `${url} ${authorization} ${Buffer.from(authorization.slice(6), 'base64')}`;
const text = { 'content-type': 'text/plain' };

const answers: Record<string, Answer> = {
  'an error page with status 200': (request, response) =>
    void response.writeHead(200, text).end(`cannot serve ${'.'.repeat(60)} ${said(request)}\n`),
  'a redirect': (request, response) =>
    void response.writeHead(302, { location: `/login?next=${encodeURIComponent(said(request))}` }).end(),
  'a redirect with credentials of its own': (request, response) =>
    void response.writeHead(302, { location: `http://a:s3cret@host${request.url}` }).end(),
  'a type of its content': (request, response) =>
    void response.writeHead(200, { 'content-type': `text/${encodeURIComponent(said(request))}` }).end('x'),
  'an invalid line between others': (request, response) =>
    void response.writeHead(200, text).end(`x 1\n${said(request)}\n`),
};

test.each(Object.entries(answers))('%s that repeats the request', async (_, answer) => {
  target.answer(answer);
  const url = `${target.url}/T0123456789/metrics?token=s3cret-token&x=1`;
  const auth = { basic: { username: 'a', password } };
  const entries: unknown[] = [];
  const log: Log = { write: (...entry) => void entries.push(entry), named: () => log };
  const { scrape } = await openScrape({ url, auth }, manualClock(), { log });
  const result = await scrape.scrapeNow();
  const shown = JSON.stringify([result, scrape.status(), entries]);
  expect(shown).toMatch(/cannot serve|redirects|not with metrics|invalid lines/);
  for (const part of ['T0123456789', 's3cret', 'pass/', 'pass%2F', btoa(`a:${password}`)])
    expect(shown).not.toContain(part);
});

// What is shown of a line is cut, and the token is longer than what is shown.
test.each([500, 3_000, 12_000])('a line that repeats a token of %i characters', async (length) => {
  const token = randomBytes(length).toString('base64url').slice(0, length);
  target.answer(
    (request, response) =>
      void response.writeHead(200, text).end(`cannot serve ${request.headers.authorization}\n`),
  );
  const entries: unknown[] = [];
  const log: Log = { write: (...entry) => void entries.push(entry), named: () => log };
  const auth = { bearer: { env: 'TOKEN' } };
  const deps = { log, readSecret: async () => token };
  const { scrape } = await openScrape({ url: `${target.url}/metrics`, auth }, manualClock(), deps);
  const shown = JSON.stringify([await scrape.scrapeNow(), scrape.status(), entries]);
  expect(shown).toContain('cannot serve');
  for (let at = 0; at + 12 <= length; at++) expect(shown).not.toContain(token.slice(at, at + 12));
});
