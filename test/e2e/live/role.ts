import { appendFileSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { join } from 'node:path';
import { listening } from '../../ports.ts';
import { createPage, type Page } from './page.ts';

/** A certificate and its key, as PEM. */
export interface Pair {
  cert: string;
  key: string;
}

/** One role of the watched service with its page, its health and its log, which the test controls. */
export interface FakeRole {
  readonly page: Page;
  /** Sets whether the role serves its page. */
  serve(does: boolean): void;
  /** Sets the health of the role. */
  feel(isWell: boolean, msg?: string): void;
  /** Sets whether the process is gone: nothing listens. */
  die(does: boolean): void;
  /** Sets whether the role stops logging its usual work. */
  rest(does: boolean): void;
  /** Logs an entry of its usual work, unless it rests. */
  work(): void;
  readonly metricsUrl: string;
  readonly healthUrl: string;
  readonly log: string;
  /** Appends the text to its log unchanged, including newlines. */
  write(text: string): void;
  /** Appends an entry to its log. */
  say(level: string, msg: string): void;
  /** Presents another certificate from the next connection on. */
  certify(pair: Pair): void;
  stop(): Promise<void>;
}

/** Starts a role. Its health uses HTTPS if it has a certificate. */
export async function startRole(directory: string, name: string, pair?: Pair): Promise<FakeRole> {
  const log = join(directory, `${name}.log`);
  writeFileSync(log, '');
  const write = (text: string) => appendFileSync(log, text);
  const say = (level: string, msg: string) =>
    write(`${JSON.stringify({ ts: new Date().toISOString(), level, msg, logger: name })}\n`);
  const page = createPage();
  let serves = true;
  let well = true;
  let rests = false;
  let complaint = '';
  const pages = createServer((_, response) => {
    response.writeHead(serves ? 200 : 503, { 'content-type': 'text/plain; version=0.0.4' });
    response.end(serves ? page.text() : '');
  });
  const metrics = await listening(pages);
  const answer: RequestListener = (_, response) => {
    response.writeHead(well ? 200 : 503, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ ok: well, msg: well ? 'healthy' : complaint }));
  };
  const secure = pair && createSecureServer(pair, answer);
  const checks = secure ?? createServer(answer);
  const health = await listening(checks);
  const die = (does: boolean) => {
    for (const [server, { port }] of [
      [pages, metrics],
      [checks, health],
    ] as const) {
      if (server.listening !== does) continue;
      if (does) server.close();
      else server.listen(port, '127.0.0.1');
      if (does) server.closeAllConnections();
    }
  };
  return {
    page,
    log,
    metricsUrl: `http://127.0.0.1:${metrics.port}/metrics`,
    healthUrl: `${secure ? 'https' : 'http'}://127.0.0.1:${health.port}/health`,
    serve(does) {
      serves = does;
    },
    feel(isWell, msg = 'shards are lost') {
      well = isWell;
      complaint = msg;
    },
    die,
    rest(does) {
      rests = does;
    },
    work() {
      if (!rests) say('info', 'working');
    },
    write,
    say,
    certify: (next: Pair) => secure?.setSecureContext(next),
    async stop() {
      await Promise.all([metrics.close(), health.close()]);
    },
  };
}
