import type { ReadSecret } from '../../core/access.ts';
import { type Sessions, sessionsOf } from '../../probes/stores/sessions.ts';
import type { StoreOptions } from '../../probes/stores/store-options.ts';
import type { AgentConfig } from '../config/types.ts';
import { type Check, type CheckAnswer, check, no, unknown, yes } from './check.ts';
import type { RunProbe } from './checks.ts';

/**
 * The guard of every step that overwrites a database: nothing is restored while the service is alive. A role that answers with a
 * fault, slowly or not at all may still write. Therefore only a refused connection counts, and the store must have no other
 * session.
 */
export interface Guard {
  /** The configuration has what is needed to show that the service is down. */
  canBeShown(): readonly Check[];
  /** The service is down. */
  isDown(): readonly Check[];
  /** No role comes back: its supervisor may start it again. */
  staysDown(): Check;
}

interface GuardDeps {
  services: AgentConfig['services'];
  store: StoreOptions | undefined;
  /** The name of the database in the store. */
  database: string | undefined;
  runProbe: RunProbe;
  readSecret: ReadSecret;
}

/** The role that owns the state of workflows. */
const owner = 'history';
const askMs = 10_000;

export function createGuard({ services, store, database, runProbe, readSecret }: GuardDeps): Guard {
  const watched = services.filter(({ selected }) => selected);
  const unwatched = (): string | undefined => {
    const blind = watched.find(({ health }) => health === undefined)?.name;
    const missing = watched.some(({ name }) => name === owner) ? blind : owner;
    return missing && `set services.${missing}.health to let svc-agent check the role, and list it in roles`;
  };

  const rolesRefuse = async (): Promise<CheckAnswer> => {
    const missing = unwatched();
    if (missing !== undefined) return unknown(missing);
    for (const { name } of watched) {
      const finding = await runProbe(`health/${name}`);
      if (finding === undefined) return unknown(`there is no probe health/${name}`);
      if (finding.ok) return no(`${name} still answers: ${finding.msg}; stop it`);
      if (finding.reason !== 'refused')
        return no(
          `${name} may still run: ${finding.msg}; only a refused connection shows that it is stopped`,
        );
    }
    return yes(`${watched.map(({ name }) => name).join(', ')}: connections are refused`);
  };

  const sessions = async (): Promise<Sessions> => {
    if (store === undefined || database === undefined) return { unknown: 'the store has no such database' };
    return sessionsOf(store, database, readSecret, AbortSignal.timeout(askMs));
  };

  const nobody = async (): Promise<CheckAnswer> => {
    const { unknown: why, isDown, open = [] } = await sessions();
    if (why !== undefined) return unknown(why);
    if (isDown) return yes('the store refuses connections');
    if (open.length === 0) return yes('no session');
    const more = open.length > 3 ? `, and ${open.length - 3} more` : '';
    return no(`${open.slice(0, 3).join('; ')}${more}; end these sessions`);
  };

  const rolesAreDown = () =>
    check('services_stopped', 'every role of the service refuses connections', rolesRefuse);

  return {
    staysDown: rolesAreDown,
    canBeShown: () => [
      check('roles_watched', 'every role has a health check', async () => {
        const missing = unwatched();
        return missing === undefined ? yes(watched.map(({ name }) => name).join(', ')) : unknown(missing);
      }),
      check('sessions_visible', 'the sessions in the database can be listed', async () => {
        const { unknown: why, isDown, open = [] } = await sessions();
        if (why !== undefined)
          return unknown(`${why}; svc-agent probe --print-grants prints what the agent's user needs`);
        return yes(isDown ? 'the store refuses connections' : `${open.length} now`);
      }),
    ],
    isDown: () =>
      [rolesAreDown(), check('no_sessions', 'nobody is connected to the database', nobody)].map((each) => ({
        ...each,
        comesTrue: true,
      })),
  };
}
