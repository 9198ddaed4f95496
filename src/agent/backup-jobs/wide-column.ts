import { quoted } from '../backup-offsite.ts';
import { entryOf, type PlannedJob, type PlanTarget, safe, stamp } from './job.ts';

/** Lines that find the data directories of the node in its own configuration. */
const findData = [
  `conf=\${CASSANDRA_CONF:-/etc/cassandra}/cassandra.yaml`,
  `mapfile -t roots < <(awk '/^[^ #-]/ { on = /^data_file_directories:/ } on && !/^ *#/' "$conf" | grep -o "/[^],\\"' ]*")`,
  `[ "\${#roots[@]}" -gt 0 ] || roots=("\${CASSANDRA_HOME:-/var/lib/cassandra}/data")`,
];

/**
 * Lines that run commands for the directory `below` of each table, in the layout of a data directory: the path of each copy shows
 * its table.
 */
const eachTable = (database: string, copies: string, below: string, lines: readonly string[]) => [
  ...findData,
  `for root in "\${roots[@]}"; do`,
  `  for folder in "$root"/${quoted(database)}/*/${below}; do`,
  '    [ -d "$folder" ] || continue',
  `    copy=${quoted(copies)}/\${folder#"$root"/}`,
  '    mkdir -p "$copy"',
  ...lines.map((line) => `    ${line}`),
  '  done',
  'done',
];

function planSnapshots(target: PlanTarget, prefix: string, copies: string): PlannedJob {
  const { database, offsite } = target;
  const [name, keyspace] = [`${prefix}-full`, quoted(database)];
  const job = { name, type: 'full' } as const;
  return {
    ...job,
    cron: '0 2,14 * * *',
    script: [
      '# On every node; in the entry of its agent, HOSTNAME is what hostname prints there:',
      `name=${prefix}-${stamp}`,
      `nodetool snapshot --tag "$name" ${keyspace}`,
      ...eachTable(database, copies, 'snapshots/"$name"', ['cp -p "$folder"/* "$copy"']),
      `[ -n "\${copy:-}" ] || { echo "no snapshot below \${roots[*]}: set CASSANDRA_CONF" >&2; exit 1; }`,
      '# The copies are the backup; the snapshot would keep the disk of the node full.',
      `nodetool clearsnapshot -t "$name" ${keyspace}`,
      ...offsite.copyEach(
        name,
        `${quoted(copies)}/${keyspace}/*/snapshots/"$name"`,
        `/$(hostname)/$name/$(basename "\${copy%/snapshots/*}")`,
      ),
      `find ${quoted(copies)} -path '*/snapshots/*' -prune -mtime +30 -exec rm -r {} +`,
    ],
    restore: [
      '# On every node, with the schema restored and every table empty: TRUNCATE them, because deleted rows stay deleted.',
      `for folder in ${quoted(`${copies}/${database}`)}/*/snapshots/NAME; do`,
      `  table=$(basename "\${folder%/snapshots/*}")`,
      // Without the option the command would move the files out of the backup.
      `  nodetool import --copy-data ${keyspace} "\${table%-*}" "$folder"`,
      'done',
    ],
    entry: {
      ...entryOf(target, job, { snapshot: { dataDirectory: copies, keyspace: database } }),
      ...offsite.observed(name, 'HOSTNAME'),
    },
  };
}

function planIncrementals(target: PlanTarget, prefix: string, copies: string): PlannedJob {
  const { database, offsite } = target;
  const name = `${prefix}-incremental`;
  const job = { name, type: 'incremental' } as const;
  return {
    ...job,
    cron: '*/30 * * * *',
    script: [
      '# On every node, with incremental_backups: true in cassandra.yaml. Before the flush, the newest rows are in memory only:',
      '# the start of this job is the recovery point.',
      '[ "$(nodetool statusbackup)" = running ] || { echo "the node writes no incremental backups" >&2; exit 1; }',
      `nodetool flush ${quoted(database)}`,
      ...eachTable(database, copies, 'backups', [
        'find "$folder" -maxdepth 1 -type f -exec mv -n -t "$copy" {} +',
      ]),
      ...offsite.copy(name, `--include='*/backups/*' ${quoted(copies)}`, '/$(hostname)'),
      `find ${quoted(copies)} -path '*/backups/*' -type f -mtime +8 -delete`,
    ],
    restore: [
      '# After the snapshot, for each table:',
      `nodetool import --copy-data ${quoted(database)} TABLE ${quoted(`${copies}/${database}`)}/TABLE-ID/backups`,
    ],
    entry: entryOf(target, job, { incrementals: { dataDirectory: copies, keyspace: database } }),
  };
}

export function planWideColumn(target: PlanTarget): readonly PlannedJob[] {
  const prefix = safe(`${target.store.name}-${target.role}`);
  const copies = `${target.directory}/${prefix}`;
  return [planSnapshots(target, prefix, copies), planIncrementals(target, prefix, copies)];
}
