/// A block of commands that no test runs, and why. Its calls of `perennial` are still read by the program.
struct Exclusion {
    let document: String
    /// How the block begins; empty for every block of the document.
    let beginning: String
    let reason: String

    init(_ document: String, _ beginning: String = "", because reason: String) {
        self.document = document
        self.beginning = beginning
        self.reason = reason
    }

    static let all = [
        Exclusion("README.md", "scripts/run ", because: "the test that runs the other blocks begins with scripts/run"),
        Exclusion("README.md", "sudo apt", because: "scripts/test-package installs the package"),
        Exclusion("README.md", "sudo systemctl", because: "it changes the machine"),
        Exclusion("CONTRIBUTING.md", because: "these run the tests"),
        Exclusion("docs/admin.md", "Benchmarks/run", because: "a benchmark"),
        Exclusion(
            "docs/admin.md", "perennial report summaries_check",
            because: "in the demo a change of the last seconds may differ; SummaryFigureTests runs it"),
        Exclusion("docs/cli.md", because: "a list of commands about the reader's own app, customers and files"),
        Exclusion("docs/customers.md", because: "decisions about the reader's own customers"),
        Exclusion("docs/development.md", because: "these run the tests and the demo"),
        Exclusion("docs/fuzzing.md", because: "these run the tests for hours"),
        Exclusion("docs/import.md", because: "the reader's own file; README.md imports one of this name"),
        Exclusion("docs/install.md", because: "scripts/test-package installs the package"),
        Exclusion("docs/operations.md", "*/5", because: "a line of a crontab"),
        Exclusion("docs/operations.md", "sudo", because: "it needs the package"),
        Exclusion("docs/operations.md", "DATABASE_URL=", because: "the reader's own database"),
        Exclusion("docs/performance.md", because: "benchmarks"),
        Exclusion("docs/purchases.md", because: "orders of the reader's own app"),
        Exclusion("docs/reports.md", "scripts/export-csv", because: "ExportTests runs it"),
        Exclusion("docs/server-api.md", because: "the reader's own app and key"),
        Exclusion("docs/simulator.md", "perennial simulator", because: "it runs until it is stopped"),
        Exclusion("docs/simulator.md", "curl -d '{\"key_id\"", because: "the keys in it are shortened"),
        Exclusion("docs/simulator.md", "curl -d '{\"endpoint\"", because: "a rate would hold for the tests beside"),
        Exclusion("docs/webhooks.md", "perennial webhook add", because: "the reader's own receiver"),
    ]
}
