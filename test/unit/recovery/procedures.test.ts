import { expect, test } from 'vitest';
import { check, no } from '../../../src/agent/recovery/check.ts';
import { procedures, type RecoveryStep } from '../../../src/agent/recovery/procedures.ts';

type Situation = Parameters<(typeof procedures)['failback']['steps']>[0];

/** Checks whose names are the functions that create them, with their arguments. */
const named = <T extends object>(lists: readonly string[] = []) =>
  new Proxy({} as T, {
    get:
      (_, name: string) =>
      (...args: readonly string[]) => {
        const one = check([name, ...args].join(' '), name, async () => no(''));
        return lists.includes(name) ? [one] : one;
      },
  });

function situation(
  own: Readonly<Record<string, readonly string[]>>,
  over: Partial<Situation> = {},
): Situation {
  return {
    subject: { store: 'main', database: 'persistence', domain: 'orders', to: 'dc2', backup: '/b.sql' },
    commands: {
      client: (...words) => own.client && [...own.client, ...words],
      named: (name) => own[name],
    },
    checks: named(['healthy', 'otherDatabasesUp']),
    guard: named(['canBeShown', 'isDown']),
    restore: { programs: [], commands: [['load']], safetyCopy: { name: 'the copy', commands: [['copy']] } },
    restoreChecks: named(['reaches', 'needs', 'copyNeeds']),
    reaches: 'Restores all.',
    copiesFirst: true,
    path: '',
    ...over,
  };
}

/** The parts of a step that a person reads: conditions, commands or the work by hand, and proofs. */
const short = ({
  id,
  needs,
  requires,
  watches,
  commands,
  byHand,
  isDone,
  proves,
  confirm,
  clears,
}: RecoveryStep) => {
  const ids = (checks: readonly { id: string }[] | undefined) =>
    checks?.length ? checks.map((each) => each.id) : undefined;
  const work = commands?.map((words) => words.join(' ')) ?? (byHand && 'by hand');
  const all = {
    needs: ids(needs),
    requires: ids(requires),
    watches: watches?.id,
    work,
    isDone: isDone?.id,
    proves: ids(proves),
    confirm,
    clears,
  };
  return [id, Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))];
};

const own = Object.fromEntries(
  ['stopServices', 'startServices', 'restore', 'safetyCopy', 'standbyProbe', 'repointTraffic', 'deploy'].map(
    (name) => [name, [`own-${name}`]],
  ),
);
const all = { ...own, client: ['cli'] };
const stepsOf = (procedure: keyof typeof procedures, commands: typeof own, over?: Partial<Situation>) =>
  Object.fromEntries(procedures[procedure].steps(situation(commands, over)).map(short));

const restored = {
  requires: ['isDown'],
  watches: 'staysDown',
  proves: ['storeUp'],
  confirm: 'main',
};
const verified = {
  requires: ['isDown'],
  proves: ['schema', 'workflowsCounted', 'newestRow'],
  clears: ['restore'],
};
const lists = { proves: ['healthy', 'pollersBack', 'workflowsListed'] };

// The steps and their order are those of the spec's recovery procedures.
test('database corruption, with the agent’s own way to restore and with commands of the configuration', () => {
  expect(stepsOf('database-corruption', {})).toEqual({
    confirm: {},
    'stop-services': { needs: ['canBeShown'], work: 'by hand' },
    'safety-copy': { needs: ['copyNeeds'], requires: ['isDown'], work: ['copy'], isDone: 'nothingToCopy' },
    restore: { needs: ['backupVerified', 'reaches', 'needs'], work: ['load'], ...restored },
    'verify-data': verified,
    'start-services': { work: 'by hand', proves: ['healthy'], clears: ['stop-services', 'start-services'] },
    'verify-workflows': lists,
  });
  expect(stepsOf('database-corruption', all)).toEqual({
    confirm: {},
    'stop-services': { needs: ['canBeShown', 'programs_stop'], work: ['own-stopServices'] },
    'safety-copy': {
      needs: ['programs_safety_copy'],
      requires: ['isDown'],
      work: ['own-safetyCopy'],
      isDone: 'nothingToCopy',
    },
    restore: { needs: ['backupVerified', 'reaches', 'programs_restore'], work: ['own-restore'], ...restored },
    'verify-data': verified,
    'start-services': {
      needs: ['programs_start'],
      work: ['own-startServices'],
      proves: ['healthy'],
      clears: ['stop-services', 'start-services'],
    },
    'verify-workflows': lists,
  });
  expect(Object.keys(stepsOf('database-corruption', all))).toEqual([
    ...[
      'confirm',
      'stop-services',
      'safety-copy',
      'restore',
      'verify-data',
      'start-services',
      'verify-workflows',
    ],
  ]);
});

test.each([
  ['--no-safety-copy', { copiesFirst: false }],
  [
    'a base backup, before which the server’s files are moved aside',
    { restore: { programs: [], byHand: ['mv', 'cp'] } },
  ],
])('no copy with %s', (_, over) =>
  expect(stepsOf('database-corruption', {}, over)).not.toHaveProperty('safety-copy'),
);

test.each<[string, string, Record<string, readonly string[]>, Partial<Situation>, string]>([
  ['the way in which it copies', 'safety-copy', {}, {}, 'The copy is the copy;'],
  ['its command', 'safety-copy', own, {}, 'The copy is made by recovery.commands.safetyCopy;'],
  ['that a person copies', 'safety-copy', {}, { restore: { programs: [] } }, 'The copy is made by hand;'],
  ['the domain', 'verify-workflows', all, {}, 'cli --domain orders workflow list'],
  [
    'that a domain is missing',
    'verify-workflows',
    all,
    { subject: { store: 'main', database: 'persistence' } },
    'cli --domain DOMAIN workflow list',
  ],
])('a step names %s: %s', (_, id, commands, over, text) => {
  const steps = procedures['database-corruption'].steps(situation(commands, over));
  expect(steps.find((step) => step.id === id)?.text).toContain(text);
});

test('a restore by hand shows its lines, or says how to get them', () => {
  const byHand = (over: Partial<Situation>) =>
    procedures['database-corruption'].steps(situation({}, over)).find(({ id }) => id === 'restore')?.byHand;
  expect(byHand({ restore: { programs: [], byHand: ['mv', 'cp'] } })).toBe('mv\n  cp');
  expect(byHand({ restore: { programs: [] } })).toMatch(/^Restore \/b\.sql with the store’s own tools/);
});

const failover = (conditions: object) => ({
  ...conditions,
  work: ['cli --domain orders domain update --active_cluster dc2'],
  ...{ isDone: 'activeIn dc2', proves: ['activeIn dc2'], confirm: 'orders' },
});
const movable = ['globalDomain', 'inClusters dc2', 'clusterReachable dc2'];

test('datacenter failure', () => {
  const rest = {
    'repoint-traffic': { work: ['own-repointTraffic'] },
    'watch-replication': { proves: ['noDisagreement'] },
  };
  expect(stepsOf('datacenter-failure', all)).toEqual({
    confirm: { needs: ['activeClusterDown', 'standbySeesItDown'] },
    'update-domain': failover({ needs: movable }),
    ...rest,
  });
  expect(stepsOf('datacenter-failure', {})).toEqual({
    confirm: { needs: ['activeClusterDown'], proves: ['standbySeesItDown'] },
    'update-domain': { ...failover({ needs: movable }), work: 'by hand' },
    ...{ ...rest, 'repoint-traffic': { work: 'by hand' } },
  });
});

test('failback', () =>
  expect(stepsOf('failback', all)).toEqual({
    confirm: { needs: movable },
    'caught-up': { requires: ['replicationCaughtUp dc2', 'noDisagreement'] },
    'update-domain': failover({ requires: ['replicationCaughtUp dc2'] }),
    'repoint-traffic': { work: ['own-repointTraffic'] },
  }));

test('complete cluster loss', () => {
  const steps = stepsOf('cluster-loss', all);
  expect(Object.keys(steps)).toEqual([
    'provision',
    'safety-copy',
    'restore',
    'verify-data',
    'deploy',
    'verify-workflows',
  ]);
  expect(steps).toMatchObject({
    provision: { needs: ['canBeShown'], work: 'by hand', isDone: 'serverUp' },
    deploy: {
      needs: ['programs_deploy'],
      requires: ['otherDatabasesUp'],
      work: ['own-deploy'],
      proves: ['healthy'],
    },
  });
});

test('what a run leaves behind names how it is undone', () => {
  const left = (commands: typeof own, id: string) => {
    const found = procedures['database-corruption']
      .steps(situation(commands))
      .find((each) => each.id === id)?.leaves;
    return found && `${found.what} ${found.undo}`;
  };
  expect(left(all, 'stop-services')).toBe('The services are stopped. To start them: $ own-startServices');
  expect(left({}, 'stop-services')).toBe(
    'The services are stopped. To start them: start the roles of the service by hand',
  );
  expect(left({}, 'restore')).toBe(
    'persistence of main may be restored in part. Run the same command again before the services start: it resumes.',
  );
});
