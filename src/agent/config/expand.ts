import type { Scalar } from './tree.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** A scalar with its variables put in, or what is wrong with it. */
export type Expanded = { text: string } | { fault: string };

const variable = /\$\$\{|\$\{([^{}]*)\}?/g;
const named = /^([A-Za-z_]\w*)(?::([\s\S]*))?$/;

/**
 * Puts variables into a scalar's text: `${NAME}`, `${NAME:default}`; `$${` is a plain `${`. What a variable
 * holds is not expanded again. An unset variable without default is a fault, an empty one is empty.
 */
export function expand(text: string, env: Environment): Expanded {
  let fault: string | undefined;
  const expanded = text.replace(variable, (found, inside: string | undefined) => {
    if (found === '$${') return '${';
    const [, name, otherwise] = named.exec(inside ?? '') ?? [];
    if (!found.endsWith('}') || name === undefined) {
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of the message
      fault ??= 'not a variable; use ${NAME}, ${NAME:default}, or $${ for a plain ${';
      return '';
    }
    const value = env[name] ?? otherwise;
    if (value === undefined) fault ??= `variable ${name} is not set; set it, or write \${${name}:default}`;
    return value ?? '';
  });
  return fault === undefined ? { text: expanded } : { fault };
}

/** What an unquoted text means in YAML 1.2's core schema, quoted texts included. */
export function resolvePlain(text: string): Scalar {
  const trimmed = text.trim();
  if (/^(?:|~|null|Null|NULL)$/.test(trimmed)) return null;
  if (/^(?:true|True|TRUE)$/.test(trimmed)) return true;
  if (/^(?:false|False|FALSE)$/.test(trimmed)) return false;
  if (/^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/.test(trimmed)) return Number(trimmed);
  if (/^0(?:o[0-7]+|x[0-9a-fA-F]+)$/.test(trimmed)) return Number(trimmed);
  const [, quoted] = /^(?:"([^"\\]*)"|'[^']*')$/.exec(trimmed) ?? [];
  if (quoted !== undefined) return quoted;
  return /^'[^']*'$/.test(trimmed) ? trimmed.slice(1, -1) : text;
}
