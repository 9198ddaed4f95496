import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { root } from '../../unit/house/imports.ts';
import { instructionsOf, stagesOf } from './dockerfile.ts';

const text = (path: string) => readFileSync(join(root, path), 'utf8');
const { version, engines } = JSON.parse(text('package.json')) as {
  version: string;
  engines: { node: string };
};
const files = readdirSync(join(root, 'deploy'), { recursive: true, encoding: 'utf8' }).map((path) =>
  join('deploy', path),
);
/** Every capture of a pattern in the files whose names match. */
const all = (names: RegExp, pattern: RegExp) =>
  files
    .filter((path) => names.test(path))
    .flatMap((path) => [...text(path).matchAll(pattern)].map((match) => `${path} ${match[1]}`));

describe('one version', () => {
  test('is in the package, its lock, the image, the overlays and the chart', () => {
    const lock = JSON.parse(text('package-lock.json')) as {
      version: string;
      packages: Record<string, { version?: string }>;
    };
    expect([lock.version, lock.packages['']?.version]).toEqual([version, version]);
    expect([...text('Dockerfile').matchAll(/^ARG VERSION=(.*)$/gm)].map(([, is]) => is)).toEqual([
      version,
      version,
    ]);
    const chart = parse(text('deploy/helm/svc-agent/Chart.yaml')) as { version: string; appVersion: string };
    expect([chart.version, chart.appVersion]).toEqual([version, version]);
    expect(text('deploy/helm/svc-agent/templates/_helpers.tpl')).toContain(`"version" "${version}"`);
    const tags = all(/kustomization\.yaml$/, /newName: svc-agent(?:-tools)?, newTag: "?([^ "}]+)/g);
    expect(tags.length).toBeGreaterThan(4);
    expect(tags.filter((tag) => !tag.endsWith(` ${version}`))).toEqual([]);
    const built = all(/README\.md$/, /svc-agent(?:-tools)?:(\d+(?:[.\w-]*\w)?)/g);
    expect(built.filter((tag) => !tag.endsWith(` ${version}`))).toEqual([]);
  });
});

test('metrics and logs are kept as long as the specification recommends', () => {
  const days = (file: string, pattern: RegExp) => Number(pattern.exec(text(`deploy/${file}`))?.[1]);
  const retention = /storage\.tsdb\.retention\.time=(\d+)d/;
  const kept = [
    { what: 'raw', days: days('prometheus/prometheus.yml', retention), from: 15, to: 30 },
    { what: 'aggregated', days: days('prometheus/aggregates.yml', retention), from: 90, to: 365 },
    { what: 'logs', days: days('systemd/svc.logrotate', /^\s*maxage (\d+)$/m), from: 7, to: 30 },
  ];
  expect(kept.filter((one) => !(one.days >= one.from && one.days <= one.to))).toEqual([]);
});

describe('one set of paths', () => {
  const image = stagesOf(instructionsOf(text('Dockerfile')));
  const programOf = (command: string) => /\S+\/dist\/main\.js/.exec(command)?.[0];

  test('of the program in the image, its health check and the chart', () => {
    for (const [stage, instructions] of image) {
      const programs = instructions
        .map(({ rest }) => /"(\S*main\.js)"/.exec(rest)?.[1])
        .filter((program) => program !== undefined);
      expect(
        programs.every((program) => program === '/app/dist/main.js'),
        stage,
      ).toBe(true);
    }
    expect(programOf(text('deploy/helm/svc-agent/templates/NOTES.txt'))).toBe('/app/dist/main.js');
  });

  test('of the configuration and the state, wherever they are mounted or named', () => {
    const mounted = all(/\.ya?ml$|\.tpl$/, /mountPath: (\/(?:etc|var\/lib\/svc)\S+)/g).map(
      (at) => at.split(' ')[1]!,
    );
    expect([...new Set(mounted)].sort()).toEqual([
      '/etc/log-rotation',
      '/etc/svc-agent',
      '/etc/svc-agent-secrets',
      '/var/lib/svc-agent',
    ]);
    const unit = text('deploy/systemd/svc-agent.service');
    expect(programOf(unit)).toBe('/opt/svc-agent/dist/main.js');
    expect(unit).toMatch(/^StateDirectory=svc-agent$/m);
    expect(unit).toMatch(/ run -c \/etc\/svc-agent\/agent\.yaml$/m);
    for (const [, instructions] of [...image].filter(([stage]) => stage !== 'build')) {
      const rest = (keyword: string) => instructions.find((one) => one.keyword === keyword)?.rest ?? '';
      expect(rest('CMD')).toBe('["run", "-c", "/etc/svc-agent/agent.yaml"]');
      expect(rest('VOLUME')).toBe('["/var/lib/svc-agent"]');
    }
  });

  test('of what is shipped: the package, the image and the host have the same folders', () => {
    const { files: shipped } = JSON.parse(text('package.json')) as { files: string[] };
    const copied = image.get('agent')!.flatMap(({ keyword, rest }) => {
      const to = keyword === 'COPY' ? rest.split(' ').at(-1)! : '';
      return to.startsWith('/app/') ? [to.slice('/app/'.length)] : [];
    });
    for (const folder of copied.filter((name) => name !== 'LICENSE')) {
      expect(shipped).toContain(folder.split('/')[0]);
    }
    const onHost = /cp -r (.*) \/opt\/svc-agent\//.exec(text('deploy/README.md'))![1]!.split(' ');
    expect(onHost.filter((name) => name !== 'README.md').every((name) => copied.includes(name))).toBe(true);
  });

  test('Node is new enough in the image', () => {
    const major = Number(/^ARG NODE_IMAGE=node:(\d+)/m.exec(text('Dockerfile'))![1]);
    expect(major).toBeGreaterThanOrEqual(Number(/(\d+)/.exec(engines.node)![1]));
  });
});
