import Hummingbird
import Subscriptions
import Tracking

struct Choice {
    let value, title: String
    let isChosen: Bool

    /// Returns entries for values with their titles, after an entry with the title `none` for the choice of no value.
    static func list(_ values: [(String, String)], chosen: String?, none: String? = nil) -> [Choice] {
        (none.map { [Choice(value: "", title: $0, isChosen: chosen == nil)] } ?? [])
            + values.map { Choice(value: $0, title: $1, isChosen: $0 == chosen) }
    }

    /// Returns entries for words that are their own titles.
    static func list(_ words: [String], chosen: String? = nil, none: String? = nil) -> [Choice] {
        list(words.map { ($0, $0) }, chosen: chosen, none: none)
    }
}

/// `GET /admin`: the state of the business and of the installation.
struct OverviewPage {
    static let stretches = [30, 90, 365, 1_095]

    /// A figure in large letters.
    struct Tile {
        let title, figure: String
        var detail = "now"
        var isAlarm = false
        /// The page that lists what it counts.
        var link: String?
    }

    let apps, environments, stretches: [Choice]
    let tiles: [Tile]
    let charts: [Chart]
    /// How current the figures are.
    let currency: String

    init(
        _ overview: Overview, due: [DueDeliveries], webhooks: [(id: Int32, trouble: String)], _ choice: FiguresChoice,
        days: Int
    ) {
        (apps, environments) = (choice.apps, choice.environments)
        stretches = Choice.list(Self.stretches.map { ("\($0)", "\($0) days") }, chosen: "\(days)")
        tiles = Self.tiles(of: overview, choice) + [Tile(due: due), Tile(webhooks: webhooks)].compactMap(\.self)
        charts = overview.charts
        currency = Self.currency(of: overview.staleness)
    }

    private static func tiles(of overview: Overview, _ choice: FiguresChoice) -> [Tile] {
        let (last, late, app) = (overview.days.last, overview.staleness, choice.app?.text ?? "")
        let query: KeyValuePairs = ["app": app, "environment": choice.environment.rawValue]
        let revenue = overview.revenue.map { one in
            Tile(
                title: "MRR in \(one.currency)", figure: amountText(one.days.last?.milliunits ?? 0),
                link: address("/admin/cohorts", query))
        }
        let unasked = Tile(
            title: "Not asked about", figure: grouped(late.unasked),
            detail: "known by notification or transaction only: store a key with `perennial app server-key`",
            isAlarm: true)
        return revenue + [
            Tile(
                title: "With access", figure: grouped(last?.active ?? 0),
                link: address("/admin/customers", ["app": app, "state": "active"])),
            Tile(title: "Paying", figure: grouped(last?.paying ?? 0), link: address("/admin/retention", query)),
            Tile(
                title: "Checks overdue", figure: overdueText(late.overdue),
                detail: late.oldestDueAt.map { "the oldest since \(readable($0))" } ?? "by more than five minutes",
                isAlarm: late.overdue > 0),
            Tile(
                title: "Workers", figure: grouped(late.workers), detail: "alive within two minutes",
                isAlarm: late.workers == 0),
            Tile(
                title: "Incidents", figure: grouped(late.incidents), detail: "running", isAlarm: late.incidents > 0,
                link: "/admin/incidents"),
            Tile(
                title: "Violations", figure: grouped(late.violations), detail: "of promises, as workers found",
                isAlarm: late.violations > 0, link: "/admin/incidents"),
        ] + (late.unasked > 0 ? [unasked] : [])
    }

    private static func overdueText(_ overdue: Int64) -> String {
        let most = Int64(Overview.Staleness.overdueMax)
        return overdue < most ? grouped(overdue) : "over \(grouped(most))"
    }

    private static func currency(of late: Overview.Staleness) -> String {
        guard let at = late.summarisedAt else { return "No worker has summarised anything yet." }
        let whole =
            late.isComplete
            ? ""
            : " A round through all subscriptions is under way, the first or at new prices: "
                + "figures are as before where it has not been yet."
        // Workers summarise events every few seconds.
        let missing =
            late.eventsBehind > 0
            ? "without the \(grouped(late.eventsBehind)) newest events, which a worker adds next"
            : "with every event so far"
        return "Days are UTC days; the last one is today so far. Summarised at \(readable(at)), \(missing).\(whole)"
    }
}

extension OverviewPage.Tile {
    fileprivate init?(due: [DueDeliveries]) {
        guard let seconds = due.map(\.seconds).max() else { return nil }
        let deliveries = grouped(due.reduce(0) { $0 + $1.deliveries })
        self.init(
            title: "Deliveries due", figure: due.contains(where: \.isMore) ? "over \(deliveries)" : deliveries,
            detail: "the oldest for \(lasting(seconds))", isAlarm: seconds > LedgerDeliveries.lateSeconds)
    }

    fileprivate init?(webhooks: [(id: Int32, trouble: String)]) {
        guard let first = webhooks.first else { return nil }
        self.init(
            title: "Webhooks to look at", figure: grouped(Int64(webhooks.count)),
            detail: "the first is number \(first.id)", isAlarm: true, link: "/admin/webhooks")
    }
}

extension AdminSite {
    func overview(_ request: Request, _ context: AdminContext) async throws -> Response {
        let choice = try FiguresChoice(request, apps: await tracker.ledger.apps.all())
        let asked = request.query("days").flatMap(Int.ofDigits) ?? 90
        let days = OverviewPage.stretches.contains(asked) ? asked : 90
        let content = OverviewPage(
            try await tracker.ledger.admin.overview(app: choice.app, environment: choice.environment, days: days),
            due: try await tracker.ledger.deliveries.due(of: choice.app, in: choice.environment),
            webhooks: try await tracker.ledger.webhooks.troubles(), choice, days: days)
        return try context.page("Overview", "overview", content)
    }
}

/// `GET /admin/incidents`: paused apps, current and past incidents, and the state of the invariants.
struct IncidentsPage {
    static let incidentsMax = 50

    let pauses, incidents, invariants, notified: AdminTable

    init(_ incidents: [Incident], apps: [App], invariants: [InvariantStanding]) {
        pauses = AdminTable(
            "Apps whose checks are paused", ["App", "Until", "Why"], empty: "No app is paused.",
            apps.flatMap { app in
                app.pauses.map { [.text($0.place(in: app.bundleID)), .instant($0.until), .text($0.reason)] }
            })
        notified = AdminTable(
            "Apps whose notifications can be tried", ["App", "Action"], empty: "No app has a server key.",
            apps.filter { $0.serverKey != nil }.map { app in
                let query: KeyValuePairs = ["action": SupportAction.test.rawValue, "app": app.bundleID.text]
                return [
                    .text(app.bundleID.text),
                    .text(SupportAction.test.title, link: address(SupportPage.path, query)),
                ]
            })
        self.incidents = AdminTable(
            "Incidents, those that run first", of: incidents, empty: "There was none.",
            [
                ("App", { .text($0.bundleID.text) }), ("What", { .text($0.kind.rawValue) }),
                ("Since", { .instant($0.openedAt) }), ("Until", { .instant($0.closedAt, orElse: "running") }),
                ("Answers", { .number($0.asked) }), ("Refused", { .number($0.refused) }),
                ("Last reason", { .text($0.lastReason) }),
            ])
        self.invariants = AdminTable(
            "Invariants, as workers found them", of: invariants, empty: "No worker has looked at them yet.",
            [
                ("Invariant", { .text($0.name) }), ("Violations", { .number($0.violations) }),
                ("Repaired", { .number($0.repaired) }), ("Looked at", { .instant($0.checkedAt) }),
                ("What to do", { .text($0.left > 0 ? "Run `perennial verify`" : nil) }),
            ])
    }
}

extension AdminSite {
    func incidents(_: Request, _ context: AdminContext) async throws -> Response {
        let content = IncidentsPage(
            try await tracker.ledger.admin.incidents(limit: IncidentsPage.incidentsMax),
            apps: try await tracker.ledger.apps.all(),
            invariants: try await tracker.ledger.operations.invariantStandings())
        return try context.page("Incidents", "incidents", content)
    }
}
