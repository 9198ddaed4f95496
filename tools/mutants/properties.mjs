// A counterexample that a mutant causes need not be shrunk.
import fc from 'fast-check';

fc.configureGlobal({ endOnFailure: true });
