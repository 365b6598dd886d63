import Hummingbird
import Ledger
import Subscriptions
import Tracking

/// `GET /admin/incidents`: paused apps, current and past incidents, and the state of the invariants.
struct IncidentsPage {
    /// The most incidents that are shown.
    static let incidentsMax = 50

    let pauses: AdminTable
    let incidents: AdminTable
    let invariants: AdminTable
    let notified: AdminTable

    init(_ incidents: [Incident], apps: [App], invariants: [InvariantStanding]) {
        pauses = AdminTable(
            "Apps whose checks are paused", ["App", "Until", "Why"], empty: "No app is paused.",
            apps.flatMap { app in
                app.pauses.map { [.text($0.place(in: app.bundleID)), .instant($0.until), .text($0.reason)] }
            })
        notified = AdminTable(
            "Apps whose notifications can be tried", ["App", "Action"], empty: "No app has a server key.",
            apps.filter { $0.serverKey != nil }.map { app in
                [
                    .text(app.bundleID.text),
                    .text(
                        SupportAction.test.title,
                        link: address(
                            SupportPage.path, ["action": SupportAction.test.rawValue, "app": app.bundleID.text])),
                ]
            })
        self.incidents = AdminTable(
            "Incidents, those that run first", ["App", "What", "Since", "Until", "Answers", "Refused", "Last reason"],
            empty: "There was none.",
            incidents.map { one in
                [
                    .text(one.bundleID.text), .text(one.kind.rawValue), .instant(one.openedAt),
                    .instant(one.closedAt, orElse: "running"), .number(one.asked), .number(one.refused),
                    .text(one.lastReason),
                ]
            })
        self.invariants = AdminTable(
            "Invariants, as workers found them", ["Invariant", "Violations", "Repaired", "Looked at", "What to do"],
            empty: "No worker has looked at them yet.",
            invariants.map { one in
                [
                    .text(one.name), .number(one.violations), .number(one.repaired), .instant(one.checkedAt),
                    .text(one.left > 0 ? "Run `perennial verify`" : nil),
                ]
            })
    }
}

extension AdminSite {
    /// `GET /admin/incidents`
    func incidents(_: Request, _ context: AdminContext) async throws -> Response {
        let content = IncidentsPage(
            try await tracker.ledger.admin.incidents(limit: IncidentsPage.incidentsMax),
            apps: try await tracker.ledger.apps.all(),
            invariants: try await tracker.ledger.operations.invariantStandings())
        return try AdminPage(
            title: "Incidents", template: "incidents", content: content, session: context.session
        ).response()
    }
}
