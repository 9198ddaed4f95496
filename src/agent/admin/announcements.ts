import type { ReadSecret } from '../../core/access.ts';
import type { Clock, Drops } from '../../core/ports.ts';
import { redactedMessage } from '../../core/redacted.ts';
import type { BackupOptions } from '../../probes/backups/block.ts';
import { journalPath, readRuns, recordRun } from '../../probes/backups/journal.ts';
import { type Authenticator, createAuthenticator } from '../../reporters/listen/auth.ts';
import type { Reply, Request, Routes } from '../../reporters/listen/http.ts';
import type { AdminConfig } from '../config/types.ts';
import type { Change } from '../report.ts';

interface AnnouncementDeps {
  readSecret: ReadSecret;
  clock: Clock;
  drops: Drops;
}

/**
 * `POST /backup/NAME/start|success|fail` for each backup whose source is a heartbeat (docs/http-api.md). They require the token
 * of the backup as a bearer token instead of the credentials of the listener. `success` takes `?size=BYTES`.
 */
export function heartbeatRoutes(
  backups: readonly BackupOptions[],
  stateDirectory: string,
  { readSecret, clock, drops, checkNow }: AnnouncementDeps & { checkNow(probe: string): Promise<unknown> },
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
    // An unknown name costs a comparison, too, so that the timing does not reveal which backups exist.
    if (!(await isAccepted(token ?? [...tokens.values()][0]!, { message, reply, drops }))) return;
    const size = url.searchParams.get('size');
    if (!token || (size !== null && !/^\d{1,16}$/.test(size))) {
      reply.send(token ? 400 : 404, token ? 'size is not a number of bytes.\n' : 'No such backup.\n');
      return;
    }
    await record(name, event, size === null ? undefined : Number(size));
    reply.send(200, 'Recorded.\n');
    // A probe does not run again within a second of its last result, which may be older than the record.
    if (event !== 'start') clock.after(1_000, () => void checkNow(`backup/${name}`));
  };
  return { '/backup/*': { methods: ['POST'], access: 'open', handle } };
}

interface Asked extends Pick<Request, 'message'> {
  reply: Reply;
  drops: Drops;
}

/** Whether a request has the token. A request without it gets its response here. */
async function isAccepted(token: Authenticator, { message, reply, drops }: Asked): Promise<boolean> {
  if ((await token.authenticate(message.headers.authorization)) === 'accepted') return true;
  drops.count('pull', 'unauthorized');
  reply.send(401, 'Unauthorized.\n', {
    'www-authenticate': 'Bearer realm="svc-agent"',
    connection: 'close',
  });
  return false;
}

/** The kinds of changes that are announced; the agent detects the other kinds itself. */
const announced = ['deploy', 'maintenance', 'note', 'exit'] as const;

export const longestMaintenanceSeconds = 7 * 86_400;
const longestBody = 4_096;
/** The maximum length of the text of an announcement. */
export const longestText = 200;

/** The body of a request as text; undefined if it is longer than an announcement. */
async function bodyOf(message: Request['message']): Promise<string | undefined> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of message as AsyncIterable<Buffer>) {
    size += piece.length;
    if (size > longestBody) return undefined;
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}

/** The announced change, or a text about what is wrong with the announcement. */
function changeIn(body: string | undefined, at: string): Change | string {
  if (body === undefined) return `The body is longer than ${longestBody} bytes.`;
  let content: { kind?: unknown; text?: unknown; seconds?: unknown; role?: unknown } | null;
  try {
    content = JSON.parse(body) as typeof content;
  } catch {
    return 'The body is not JSON; send {"kind": "deploy", "text": "frontend 1.2.3"}.';
  }
  const kind = announced.find((one) => one === (content?.kind ?? 'deploy'));
  if (!kind) return `kind is not one of ${announced.join(', ')}.`;
  const text = content?.text;
  if (typeof text !== 'string' || text.trim() === '' || text.length > longestText)
    return `text is not a string of 1 to ${longestText} characters.`;
  const change: Change = { at, kind, what: redactedMessage(text.trim()) };
  if (kind === 'exit') {
    const role = content?.role;
    if (typeof role !== 'string' || role === '' || role.length > longestText)
      return 'role is missing; name the role whose process ended.';
    return { ...change, what: `${role} ended: ${change.what}`, role };
  }
  if (kind !== 'maintenance') return change;
  const { seconds } = content!;
  const isLength =
    typeof seconds === 'number' && (seconds === 0 || (seconds >= 1 && seconds <= longestMaintenanceSeconds));
  if (!isLength)
    return `seconds is not a number from 1 to ${longestMaintenanceSeconds}, or 0 to end announced maintenance.`;
  return { ...change, until: new Date(Date.parse(at) + seconds * 1e3).toISOString() };
}

/** `POST /event`: announces a deploy, maintenance, a note or the end of a process with the token of `admin.events` (docs/http-api.md). */
export function eventRoutes(
  { events }: Pick<AdminConfig, 'events'>,
  { readSecret, clock, drops, announce }: AnnouncementDeps & { announce(change: Change): Promise<void> },
): Routes {
  if (!events) return {};
  const token = createAuthenticator({ bearer: events.token }, { readSecret });
  const handle = async ({ message }: Request, reply: Reply): Promise<void> => {
    if (!(await isAccepted(token, { message, reply, drops }))) return;
    const change = changeIn(await bodyOf(message), new Date(clock.nowMs()).toISOString());
    if (typeof change === 'string') return reply.send(400, `${change}\n`, { connection: 'close' });
    await announce(change);
    reply.send(200, 'Recorded.\n');
  };
  return { '/event': { methods: ['POST'], access: 'open', handle } };
}
