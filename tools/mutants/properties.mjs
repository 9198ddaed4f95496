// A property that a mutant breaks need not be shrunk.
import fc from 'fast-check';

fc.configureGlobal({ endOnFailure: true });
