import type { ReadSecret } from '../../core/access.ts';
import type { Clock, Drops } from '../../core/ports.ts';
import type { BackupOptions } from '../../probes/backups/block.ts';
import { journalPath, readRuns, recordRun } from '../../probes/backups/journal.ts';
import { type Authenticator, createAuthenticator } from '../../reporters/listen/auth.ts';
import type { Reply, Request, Routes } from '../../reporters/listen/http.ts';

export interface HeartbeatDeps {
  readSecret: ReadSecret;
  clock: Clock;
  drops: Drops;
}

/**
 * `POST /backup/NAME/start|success|fail` for each backup whose source is a heartbeat (CONTRACT, HTTP). The token of the
 * backup is asked for as a bearer token, whatever the listener asks for besides. `success` takes `?size=BYTES`.
 */
export function heartbeatRoutes(
  backups: readonly BackupOptions[],
  stateDirectory: string,
  { readSecret, clock, drops }: HeartbeatDeps,
): Routes {
  const tokens = new Map<string, Authenticator>();
  for (const { name, source } of backups) {
    if (source.kind === 'heartbeat')
      tokens.set(name, createAuthenticator({ bearer: source.token }, { readSecret }));
  }
  if (tokens.size === 0) return {};

  const record = async (name: string, event: string, size: number | undefined): Promise<void> => {
    const journal = journalPath(stateDirectory, 'backup', name);
    const nowMs = clock.nowMs();
    if (event === 'start') return recordRun(journal, { startMs: nowMs });
    const begun = (await readRuns(journal)).findLast(({ endMs }) => endMs === undefined);
    const status = event === 'success' ? 0 : 1;
    const msg = event === 'success' ? undefined : 'the backup reported a failure';
    await recordRun(journal, {
      startMs: begun?.startMs ?? nowMs,
      // The clock may have been set back since the start.
      endMs: Math.max(begun?.startMs ?? nowMs, nowMs),
      status,
      msg,
      sizeBytes: size,
    });
  };

  const handle = async ({ url, message }: Request, reply: Reply): Promise<void> => {
    const [, name = '', event = ''] = /^\/backup\/([\w.-]+)\/(start|success|fail)$/.exec(url.pathname) ?? [];
    const token = tokens.get(name);
    // An unknown name costs a comparison too, so that nobody learns which backups there are.
    const verdict = await (token ?? [...tokens.values()][0]!).authenticate(message.headers.authorization);
    if (verdict !== 'accepted') {
      drops.count('pull', 'unauthorized');
      reply.send(401, 'Unauthorized.\n', {
        'www-authenticate': 'Bearer realm="svc-agent"',
        connection: 'close',
      });
      return;
    }
    const size = url.searchParams.get('size');
    if (!token || (size !== null && !/^\d{1,16}$/.test(size))) {
      reply.send(token ? 400 : 404, token ? 'size is not a number of bytes.\n' : 'No such backup.\n');
      return;
    }
    await record(name, event, size === null ? undefined : Number(size));
    reply.send(200, 'Recorded.\n');
  };
  return { '/backup/*': { methods: ['POST'], access: 'open', handle } };
}
