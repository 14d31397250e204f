// Runs cases one after the other and says what came of each.
"use strict";

// Longer than any answer takes on a busy machine.
const PATIENCE_MS = 30_000;

// Prints a line for each of the functions by name; ends the process with 1 if one failed.
async function run(cases) {
  let failed = 0;
  for (const [name, run] of Object.entries(cases)) {
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error("nothing came in time")), PATIENCE_MS);
    });
    try {
      await Promise.race([run(), late]);
      console.log("ok", name);
    } catch (error) {
      failed += 1;
      console.log(`FAILED ${name}: ${error.message}`);
    }
    clearTimeout(timer);
  }
  process.exit(failed ? 1 : 0);
}

module.exports = { run };
