// Setup of all tests: examples are the same each time, so that what fails was broken by the change that it fails in.
// With AGENTD_NEW_EXAMPLES others are looked for.
import fc from "fast-check";

if (!process.env.AGENTD_NEW_EXAMPLES) fc.configureGlobal({ seed: 1 });
