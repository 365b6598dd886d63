import Postgres
import SQL

extension ReportStatement {
    /// Returns why a report has no rows, in one line.
    func emptiness(_ values: [String], in transaction: Transaction) throws -> String {
        let given = Dictionary(zip(variables, values)) { first, _ in first }
        func value(_ name: String) -> String? {
            given[name].flatMap { $0.isEmpty ? nil : $0 }
        }
        let rows = try transaction.query(
            Statement(name: Queries.whyNoRows.name, sql: Queries.whyNoRows.text),
            [
                .text(value("from")), .text(value("until")), .text(value("time_zone")), .text(value("bundle_id")),
                .text(value("environment")),
            ])
        guard let row = rows.first else { return "No rows." }
        if try row.bool("is_reversed") {
            return "No rows: --from \(value("from") ?? "") is not before --until \(value("until") ?? "")."
        }
        if try row.bool("is_ahead") { return "No rows: --from \(value("from") ?? "") is in the future." }
        if try row.bool("has_no_app") { return "No rows: there is no app yet; add one with `perennial app add`." }
        let whose = value("bundle_id") ?? "any app"
        if try row.bool("has_no_receipt") { return "No rows: there is no receipt of \(whose) yet." }
        if try row.bool("is_elsewhere") {
            return "No rows: the receipts of \(whose) are of the other environment; see --set environment=Sandbox."
        }
        return variables.contains("from")
            ? "No rows: nothing that is stored belongs into this report." : "No rows: there is nothing to report."
    }
}
