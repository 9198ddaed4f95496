// Writes the packages whose code is in dist/ as a software bill of materials (CycloneDX 1.6, JSON), with the versions and the
// hashes of the lock file. It contains no time and no random number, so a build can be repeated byte by byte.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundledPackages } from './notices.mjs';

const purlOf = (name, version) => `pkg:npm/${name.replace('@', '%40')}@${version}`;

/** A hash of the lock file, `sha512-BASE64`, in the form of CycloneDX. */
function hashesOf(integrity) {
  const [, algorithm, value] = /^sha(\d+)-(.+)$/.exec(integrity ?? '') ?? [];
  if (algorithm === undefined) return [];
  return [{ alg: `SHA-${algorithm}`, content: Buffer.from(value, 'base64').toString('hex') }];
}

function componentOf(folder, locked) {
  const { version, integrity, license } = locked;
  const name = folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length);
  const purl = purlOf(name, version);
  const licenses = license ? [{ expression: license }] : [];
  return { type: 'library', 'bom-ref': purl, name, version, purl, licenses, hashes: hashesOf(integrity) };
}

/** The document, as text. Throws for a bundled package that the lock file does not have. */
export function sbom(root, metafiles) {
  const read = (file) => JSON.parse(readFileSync(join(root, file), 'utf8'));
  const { name, version, description, license } = read('package.json');
  const { packages } = read('package-lock.json');
  const components = [...bundledPackages(metafiles)].sort().map((folder) => {
    const locked = packages[folder];
    if (!locked) throw new Error(`package-lock.json: ${folder}: missing, although it is bundled`);
    return componentOf(folder, locked);
  });
  const own = { type: 'application', 'bom-ref': purlOf(name, version), name, version, description };
  const digest = createHash('sha256')
    .update(JSON.stringify([own, components]))
    .digest('hex');
  const uuid = /^(.{8})(.{4}).(.{3}).(.{3})(.{12})/.exec(digest).slice(1);
  const document = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${uuid[0]}-${uuid[1]}-5${uuid[2]}-8${uuid[3]}-${uuid[4]}`,
    version: 1,
    metadata: { component: { ...own, purl: purlOf(name, version), licenses: [{ expression: license }] } },
    components,
    dependencies: [{ ref: own['bom-ref'], dependsOn: components.map((one) => one['bom-ref']) }],
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}
