import * as z from 'zod';
import { always, has } from './access-blocks.ts';

/** The Prometheus web configuration's spelling of one of our keys. */
export const snake = (key: string): string => key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

type Shape = Record<string, z.ZodType>;
type Values<S extends Shape> = { [K in keyof S]?: z.output<S[K]> };
/** Says that something is wrong, at the key as it is spelt there; without a key at the map itself. */
export type Refuse = (key: string | undefined, message: string) => void;

/** All keys in both spellings, none required. */
function bothSpellings(shape: Shape): Record<string, z.ZodType> {
  return Object.fromEntries(
    Object.entries(shape).flatMap(([key, value]) => [
      [key, value.optional()],
      [snake(key), value.optional()],
    ]),
  );
}

/** What JSON Schema says of keys that must be there in one of their spellings. */
function schemaOf(required: readonly string[]): { allOf?: unknown } {
  const inEither = (key: string) => ({ anyOf: [{ required: [key] }, { required: [snake(key)] }] });
  return required.length > 0 ? { allOf: required.map(inEither) } : {};
}

/** The map in our spelling. */
function ours(written: object, keys: readonly string[]): Record<string, unknown> {
  const values = written as Record<string, unknown>;
  return Object.fromEntries(
    keys.flatMap((key) => {
      const value = values[key] ?? values[snake(key)];
      return value === undefined ? [] : [[key, value]];
    }),
  );
}

/**
 * A map whose keys may be in our spelling (`certFile`) or in the Prometheus web configuration's (`cert_file`), each
 * once; those of `required`, texts all of them, must be there. `rules` look at it in our spelling, whatever else is
 * wrong.
 */
export function spelledEitherWay<S extends Shape>(
  shape: S,
  required: readonly (keyof S & string)[],
  rules: (values: Values<S>, refuse: Refuse) => void,
) {
  const keys = Object.keys(shape);
  return z
    .strictObject(bothSpellings(shape))
    .check(
      z.superRefine((written, context) => {
        const isSnake = keys.some((key) => key !== snake(key) && has(written, snake(key)));
        const refuse: Refuse = (key, message) => {
          const spelt =
            key && (has(written, snake(key)) || (isSnake && !has(written, key)) ? snake(key) : key);
          context.addIssue({ code: 'custom', message, path: spelt ? [spelt] : [] });
        };
        for (const key of keys) {
          if (key !== snake(key) && has(written, key) && has(written, snake(key)))
            refuse(key, `${key} in another spelling; use one of them`);
        }
        for (const key of required) {
          if (!has(written, key) && !has(written, snake(key))) refuse(key, 'missing; set it to a string');
        }
        rules(ours(written, keys) as Values<S>, refuse);
      }, always),
    )
    .meta(schemaOf(required))
    .transform((written) => ours(written, keys) as Values<S>);
}
