import Hummingbird
import Subscriptions
import Tracking

/// The app and the environment that a page of figures is about.
struct FiguresChoice {
    let app: BundleID?
    let environment: StoreEnvironment
    let apps, environments: [Choice]

    init(_ request: Request, apps: [App]) throws {
        app = try request.app(of: apps)?.bundleID
        environment = request.query("environment").flatMap(StoreEnvironment.init(rawValue:)) ?? .production
        self.apps = Choice.list(apps.map { ($0.bundleID.text, $0.name) }, chosen: app?.text, none: "Every app")
        environments = Choice.list(StoreEnvironment.allCases.map(\.rawValue), chosen: environment.rawValue)
    }
}

/// `/admin/retention`, `/admin/cohorts` and `/admin/trials`: what became of the subscriptions that began in each month.
extension AdminSite {
    func retention(_ request: Request, _ context: AdminContext) async throws -> Response {
        let choice = try FiguresChoice(request, apps: await tracker.ledger.apps.all())
        let cohorts = try await tracker.ledger.admin.retention(app: choice.app, environment: choice.environment)
        return try figures(
            "Retention", choice, table: Self.table(of: cohorts),
            explanation: "The subscriptions that began to pay in each month, and the share of them that paid some "
                + "months later: of those whose anniversary has come, with a day for late renewals. One that lapsed "
                + "and came back is retained again. M1 is the first anniversary.", context)
    }

    func cohorts(_ request: Request, _ context: AdminContext) async throws -> Response {
        let choice = try FiguresChoice(request, apps: await tracker.ledger.apps.all())
        let cohorts = try await tracker.ledger.admin.cohorts(app: choice.app, environment: choice.environment)
        return try figures(
            "Cohorts", choice, table: Self.table(of: cohorts),
            explanation: "The subscriptions that were first charged in each month, those of them that pay now, and "
                + "their revenue so far less refunds, before Apple's commission.", context)
    }

    func trials(_ request: Request, _ context: AdminContext) async throws -> Response {
        let choice = try FiguresChoice(request, apps: await tracker.ledger.apps.all())
        let overview = try await tracker.ledger.admin.overview(
            app: choice.app, environment: choice.environment, days: 365)
        let (chart, table) = Self.trials(of: overview)
        return try figures(
            "Trials", choice, charts: [chart], table: table,
            explanation: "Trials by the month of each event: when they began, when the first charge followed, and "
                + "when they were finally over. The conversion is of the trials decided in the month.", context)
    }

    private func figures(
        _ title: String, _ choice: FiguresChoice, charts: [Chart] = [], table: AdminTable, explanation: String,
        _ context: AdminContext
    ) throws -> Response {
        let content: [String: Any] = [
            "path": "/admin/\(title.lowercased())", "apps": choice.apps, "environments": choice.environments,
            "explanation": explanation, "charts": charts, "tables": [table],
            "note": "From the rows that workers keep of each subscription; the overview says how current they are.",
        ]
        return try context.page(title, "figures", content)
    }

    private static func table(of cohorts: [RetentionCohort]) -> AdminTable {
        let last = cohorts.flatMap(\.months).map(\.month).max() ?? 0
        let rows = cohorts.reversed().map { cohort -> [AdminTable.Cell] in
            let cells = (0...last).map { month -> AdminTable.Cell in
                guard let found = cohort.months.first(where: { $0.month == month }) else {
                    return AdminTable.Cell(text: "", isNumber: true)
                }
                return month == 0 ? .number(found.reached) : .share(found.retained, of: found.reached)
            }
            return [.text(String(cohort.since.prefix(7)))] + cells
        }
        return AdminTable(
            "Retention by month",
            ["Began to pay", "Subscriptions"] + (1...max(last, 1)).prefix(last).map { "M\($0)" },
            empty: "No subscription began to pay within twelve months.", rows)
    }

    private static func table(of cohorts: [RevenueCohort]) -> AdminTable {
        AdminTable(
            "Revenue by month of the first charge", of: cohorts,
            empty: "No subscription was first charged within twelve months.",
            [
                ("First charged", { .text(String($0.since.prefix(7))) }), ("Currency", { .text($0.currency) }),
                ("Subscriptions", { .number($0.subscriptions) }), ("Pay now", { .number($0.paying) }),
                ("Share", { .share($0.paying, of: $0.subscriptions) }), ("Revenue", { .amount($0.milliunits) }),
                ("Each", { .amount($0.subscriptions > 0 ? $0.milliunits / $0.subscriptions : 0) }),
            ])
    }

    /// Returns the trials of each month as bars, and as rows with the newest first.
    private static func trials(of overview: Overview) -> (Chart, AdminTable) {
        let buckets = Buckets(overview.days.map(\.day))
        let started = buckets.sum(of: overview.days.map(\.trialsStarted))
        let converted = buckets.sum(of: overview.days.map(\.trialsConverted))
        let lost = buckets.sum(of: overview.days.map(\.trialsLost))
        let newest = buckets.names.indices.last.map { last in
            "\(buckets.names[last]): began: \(grouped(started[last])), followed by a charge: "
                + "\(grouped(converted[last])), lost: \(grouped(lost[last]))."
        }
        let chart = Chart(
            id: "trials", title: "Trials by month", description: newest ?? "No month has begun.",
            buckets: buckets.names,
            series: [
                Chart.Series(name: "Followed by a charge", values: converted.map(Double.init), style: "first"),
                Chart.Series(name: "Lost", values: lost.map(Double.init), style: "alarm"),
            ], asBars: true, table: nil)
        let table = AdminTable(
            "Trials by month", ["Month", "Began", "Followed by a charge", "Lost", "Conversion"],
            buckets.names.indices.reversed().map { month in
                [
                    .text(buckets.names[month]), .number(started[month]), .number(converted[month]),
                    .number(lost[month]), .share(converted[month], of: converted[month] + lost[month]),
                ]
            })
        return (chart, table)
    }
}

extension AdminTable.Cell {
    /// Returns a share in percent, in one of eleven shades.
    static func share(_ part: Int64, of whole: Int64) -> AdminTable.Cell {
        guard whole > 0 else { return AdminTable.Cell(text: "–", isNumber: true) }
        let tenths = (part * 1_000 + whole / 2) / whole
        return AdminTable.Cell(
            text: "\(tenths / 10).\(tenths % 10) %", isNumber: true, style: "shade-\(min(10, max(0, tenths / 100)))")
    }
}
