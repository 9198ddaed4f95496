import pg from 'pg';
import type { StoreKindRow, StoreLook, StoreTarget } from '../store.ts';
import { type Facts, factsOf } from './facts.ts';
import { faultOf } from './fault.ts';
import { type Session, withSession } from './session.ts';
import { archives, verdictsOf } from './verdicts.ts';

/** PostgreSQL, by the `pg` driver. */
export const postgres: StoreKindRow = {
  look: (target, signal) => withSession(target, signal, (session) => lookThrough(session, target)),
  faultOf,
};

async function lookThrough(session: Session, target: StoreTarget): Promise<StoreLook> {
  const schema = await schemaOf(session, target);
  const facts = await factsOf(session);
  const { identity, timeline, startedAtMs } = facts;
  return {
    serverVersion: `PostgreSQL ${facts.version}`,
    roundTripMs: session.roundTripMs,
    phasesMs: session.phasesMs,
    tlsNotAfterMs: session.tlsNotAfterMs,
    readOnly: isReadOnly(facts),
    replica: facts.standby,
    ...schema,
    ...connectionsOf(facts),
    ...archivingOf(facts),
    identity,
    timeline,
    startedAtMs,
    startKept: true,
    verdicts: verdictsOf(facts),
  };
}

async function schemaOf(
  { askConfigured }: Session,
  { schemaQuery, database }: StoreTarget,
): Promise<Pick<StoreLook, 'schemaVersion' | 'schemaUnknown'>> {
  if (database === undefined) return {};
  const answer = await askConfigured(schemaQuery.replaceAll('{database}', () => pg.escapeLiteral(database)));
  if ('unknown' in answer) return { schemaUnknown: answer.unknown };
  const version = answer.rows[0]?.first;
  return version === undefined || version === null
    ? { schemaUnknown: 'the schema query gives no row' }
    : { schemaVersion: String(version) };
}

/** A role that is itself told to read only says nothing of the server. */
function isReadOnly({ standby, settings, sources }: Facts): boolean {
  const source = sources.default_transaction_read_only ?? '';
  const ofTheRole = source.includes('user') || source === 'client' || source === 'session';
  return standby || (settings.default_transaction_read_only === 'on' && !ofTheRole);
}

function connectionsOf({ connections, settings }: Facts): Pick<StoreLook, 'connections' | 'connectionsMax'> {
  const reserved = +(settings.superuser_reserved_connections ?? 0) + +(settings.reserved_connections ?? 0);
  return {
    ...(!('unknown' in connections) && { connections: connections.byState }),
    ...(settings.max_connections !== undefined && { connectionsMax: +settings.max_connections - reserved }),
  };
}

/** Only what a file says to be waiting waits: an idle server closes no segment, however long ago the last one was. */
function archivingOf(facts: Facts): Pick<StoreLook, 'walOldestUnarchivedMs' | 'walArchiveFailures'> {
  const { archiver, backlog } = facts;
  return {
    ...(archives(facts) && !('unknown' in backlog) && { walOldestUnarchivedMs: backlog.oldestMs }),
    ...(!('unknown' in archiver) && { walArchiveFailures: archiver.failures }),
  };
}
