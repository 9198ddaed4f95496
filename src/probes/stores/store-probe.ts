import { parseAddress } from '../../core/address.ts';
import { errorText } from '../../core/errors.ts';
import type { Finding, Probe, ProbeDeps } from '../probe.ts';
import { type Noticed, notice, readRemembered } from './changes.ts';
import { findingOf } from './finding.ts';
import { connectionsVerdict, schemaVerdict } from './judging.ts';
import { storeKindRows } from './kinds.ts';
import type { StoreOptions, StoreRole } from './options.ts';
import { createRedact, type Redact } from './redact.ts';
import { versionByCommand } from './schema-command.ts';
import type { StoreKindRow, StoreLook, StoreTarget, StoreVerdict } from './store.ts';

type LookTarget = StoreTarget & { timeoutMs: number };

/** Looks at one database of a store, or at the store itself where none is named. */
export function createStoreProbe(
  options: StoreOptions,
  role: StoreRole | '',
  kind: StoreKindRow,
  { readSecret, clock, log }: Pick<ProbeDeps, 'readSecret' | 'clock' | 'log'>,
): Probe {
  const labels = { store: options.name, kind: options.kind, database: role };
  const expected = role === '' ? undefined : options.schema[role];
  const about = { credentials: whose(options), expectedSchema: expected };

  const lookAt = async (target: LookTarget, signal: AbortSignal): Promise<StoreLook> => {
    const look = await kind.look(target, signal);
    const { command } = options.schema;
    if (command === undefined || target.database === undefined) return look;
    const { schemaVersion: _, schemaUnknown: __, ...rest } = look;
    return { ...rest, ...(await versionByCommand(command, target, clock, signal)) };
  };

  const judge = (look: StoreLook, recalled: unknown): Finding => {
    const { remember, verdicts, news } = notice(readRemembered(recalled), look, clock.nowMs());
    report(news);
    const own = [schemaVerdict(look, expected), connectionsVerdict(look)].filter((one) => one !== undefined);
    const all: StoreVerdict[] = [...own, ...verdicts, ...look.verdicts];
    return { ...findingOf(look, all, options.accept, labels, about), remember };
  };

  const report = (news: Noticed['news']) => {
    for (const { check, found } of news)
      log.write('warn', 'a store is not what it was', { store: options.name, database: role, check, found });
  };

  return {
    async check(signal, recalled) {
      let password: string | undefined;
      try {
        password = options.password === undefined ? undefined : await readSecret(options.password);
      } catch (thrown) {
        return { reason: 'credentials', msg: errorText(thrown), details: about, remember: recalled };
      }
      const redact = createRedact(password);
      try {
        const look = await lookAt(targetOf(options, role, password), signal);
        return judge(scrubbed(look, redact), recalled);
      } catch (thrown) {
        return { ...failed(kind, thrown, redact, signal), details: about, remember: recalled };
      }
    },
  };
}

function targetOf(options: StoreOptions, role: StoreRole | '', password: string | undefined): LookTarget {
  const { name, kind, address, user, tls, databases, schema, timeoutMs } = options;
  return {
    store: name,
    address: parseAddress(address)!,
    user,
    password,
    tls,
    database: role === '' ? undefined : databases[role],
    schemaQuery: schema.query ?? storeKindRows[kind].schemaQuery,
    timeoutMs,
  };
}

/** Takes secrets out of what a store says in words; what becomes a label or is compared stays as it is. */
function scrubbed(look: StoreLook, redact: Redact): StoreLook {
  const { schemaUnknown, verdicts, details } = look;
  return {
    ...look,
    ...(schemaUnknown !== undefined && { schemaUnknown: redact(schemaUnknown) }),
    ...(details !== undefined && { details: redact.deep(details) }),
    verdicts: verdicts.map((verdict) => ({ ...verdict, found: redact(verdict.found) })),
  };
}

/** What is thrown once the time is over was thrown because of that, whatever the driver makes of it. */
function failed(kind: StoreKindRow, thrown: unknown, redact: Redact, signal: AbortSignal): Finding {
  const { reason, msg } = kind.faultOf(thrown);
  const isStep = reason === 'connect_timeout' || reason === 'resolve' || reason === 'tls';
  return { reason: signal.aborted && !isStep ? 'too_slow' : reason, msg: redact(msg) };
}

function whose({ credentials, user }: StoreOptions): string {
  if (user === undefined) return 'no user is named';
  return credentials === 'service'
    ? `user ${user}, with the password of the service itself`
    : `user ${user}, the agent’s own`;
}
