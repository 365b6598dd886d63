import Foundation
import Testing
import Tracking

@Suite("The dashboard and the alerts name only metrics that are exported") struct DashboardTests {
    private static let docs = (0..<4).reduce(URL(filePath: #filePath)) { folder, _ in folder.deletingLastPathComponent()
    }
    .appending(path: "docs")

    /// The metrics that a query names, without what a histogram adds.
    private func metrics(in query: String) -> Set<String> {
        let exported = Set(Metric.allCases.map(\.rawValue))
        return Set(
            query.matches(of: /\b(perennial|process)_[a-z_]+/).map { match in
                let name = String(match.output.0)
                let whole = name.replacing(/_(bucket|sum|count)$/, with: "")
                return exported.contains(name) ? name : whole
            })
    }

    private func unknown(in query: String) -> Set<String> {
        metrics(in: query).subtracting(Metric.allCases.map(\.rawValue))
    }

    /// Every text under a key, however deep.
    private func texts(_ key: String, in value: Any) -> [String] {
        if let list = value as? [Any] { return list.flatMap { texts(key, in: $0) } }
        guard let members = value as? [String: Any] else { return [] }
        return members.flatMap { name, value in
            (name == key ? [value as? String].compactMap(\.self) : []) + texts(key, in: value)
        }
    }

    @Test("Each query of the dashboard names an exported metric, by the data source that the reader chooses")
    func dashboard() throws {
        let file = try Data(contentsOf: Self.docs.appending(path: "grafana-dashboard.json"))
        let dashboard = try #require(try JSONSerialization.jsonObject(with: file) as? [String: Any])
        let panels = try #require(dashboard["panels"] as? [[String: Any]])
        let queries = texts("expr", in: panels)
        #expect(queries.count > 25)
        for query in queries + texts("query", in: dashboard["templating"] ?? []).filter({ $0.contains("(") }) {
            #expect(!metrics(in: query).isEmpty, "\(query)")
            #expect(unknown(in: query).isEmpty, "\(query) names \(unknown(in: query))")
        }
        #expect(Set(texts("uid", in: panels)) == ["${datasource}"])
        let ids = panels.compactMap { $0["id"] as? Int }
        #expect(Set(ids).count == panels.count)
    }

    @Test("Each alert names exported metrics")
    func alerts() throws {
        let rules = try String(contentsOf: Self.docs.appending(path: "alerts.yml"), encoding: .utf8)
        let queries = rules.split(separator: "\n").filter { $0.contains(" expr: ") }
        #expect(queries.count > 8)
        for query in queries { #expect(unknown(in: String(query)).isEmpty, "\(query)") }
    }

    @Test("A metric that does not exist is found")
    func unknownMetric() {
        #expect(unknown(in: "rate(perennial_answers_total[1m]) / perennial_answer_total") == ["perennial_answer_total"])
        #expect(unknown(in: "perennial_settlement_seconds_bucket + perennial_workers").isEmpty)
    }
}
