import { resolve } from 'node:path';
import { packNames } from '../../monitoring/alert.ts';
import { chosen, packNamed } from '../../monitoring/options.ts';
import { pack, type RuleFile, renderPack, shippedOptions } from '../../monitoring/packs.ts';
import { command } from './arguments.ts';
import { writeInto } from './io.ts';

const usage = `Usage: svc-agent rules [OPTIONS]

Prints the rules for Prometheus, or writes a file for each pack. Load spec or recommended, not both.

  --pack PACK            spec, recommended, recording or slo; may be repeated.
                         Default: recommended, with --out all of them
  --out DIR              write DIR/PACK.rules.yml instead of printing
  --kubernetes           as PrometheusRule objects
  --job ROLE=NAME        the name of a scrape job; ROLE is frontend, history, matching, worker or svc-agent
  --prefix P             the prefix of the metrics: P_name
  --label NAME=VALUE     an additional label on every alert
  --threshold ALERT=N    another threshold, in the alert's unit; for a burn rate the objective, such as 0.995
  --for ALERT=TIME       another time for which the condition must hold; 0s fires at once
  --runbook-url URL      address of the runbooks folder; adds runbook_url to every alert
  --dashboard-url URL    address of Grafana; adds dashboard_url to every alert
  --json                 JSON instead of YAML

Repeat --job, --label, --threshold and --for as you need them.
`;

const options = {
  pack: { type: 'string', multiple: true },
  out: { type: 'string' },
  kubernetes: { type: 'boolean' },
  job: { type: 'string', multiple: true },
  prefix: { type: 'string' },
  label: { type: 'string', multiple: true },
  threshold: { type: 'string', multiple: true },
  for: { type: 'string', multiple: true },
  'runbook-url': { type: 'string' },
  'dashboard-url': { type: 'string' },
} as const;

/** Runs `svc-agent rules`: prints rules for Prometheus with the names and limits of this installation. */
export const rules = command({ name: 'rules', usage, options }, async (values, io) => {
  const { out } = values;
  const usual = out === undefined ? (['recommended'] as const) : packNames;
  const packs = (values.pack?.map(packNamed) ?? usual).map(pack);
  const asked = chosen(
    {
      job: values.job ?? [],
      label: values.label ?? [],
      threshold: values.threshold ?? [],
      for: values.for ?? [],
      prefix: values.prefix ?? shippedOptions.prefix,
      runbookUrl: values['runbook-url'] ?? shippedOptions.runbookUrl,
      dashboardUrl: values['dashboard-url'] ?? shippedOptions.dashboardUrl,
    },
    packs,
  );
  const { listOf, prometheusRule, toYaml } = await import('../../monitoring/yaml.ts');
  const documents = packs.map((of) => {
    const file = renderPack(of, asked);
    return { name: of.name, document: values.kubernetes ? prometheusRule(of.name, file) : file };
  });
  const text = (document: object) =>
    values.json ? `${JSON.stringify(document, null, 2)}\n` : toYaml(document);
  if (out === undefined) {
    const bare = documents.map(({ document }) => document);
    io.stdout(text(values.kubernetes && bare.length > 1 ? listOf(bare) : merged(bare)));
  } else {
    const extension = values.json ? 'json' : 'yml';
    for (const { name, document } of documents)
      io.stderr(`${writeInto(resolve(io.cwd, out), `${name}.rules.${extension}`, text(document))} written\n`);
  }
  return 0;
});

/** Merges the groups of all packs into one document, which is printed. */
function merged(documents: readonly object[]): object {
  if (documents.length === 1) return documents[0]!;
  return { groups: documents.flatMap((document) => (document as RuleFile).groups) };
}
