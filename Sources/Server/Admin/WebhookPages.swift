import Hummingbird
import Subscriptions
import Tracking

/// `GET /admin/webhooks/{id}`: a webhook with what waits for it, and the forms to retry, skip and test.
struct WebhookPage {
    enum Action: String { case retry, skip, test }

    let id: Int32
    let facts, waiting: AdminTable
    let reasonCharactersMax = ManualDecision.reasonCharactersMax
    let formToken: String

    static func path(of webhook: Int32) -> String { "/admin/webhooks/\(webhook)" }

    init(_ webhook: Webhook, waiting events: [WaitingEvent], formToken: String) {
        id = webhook.id
        self.formToken = formToken
        facts = AdminTable(
            "The webhook",
            facts: [
                ("Sends to", .text(webhook.shownURL)),
                ("App", .text(webhook.bundleID?.text ?? "every app")),
                ("Kinds", .text(webhook.kinds?.joined(separator: ", ") ?? "every kind")),
                ("Environment", .text(webhook.environment?.rawValue ?? "both")),
                ("Calls at a time", .number(webhook.concurrency)),
                ("State", .webhookState(webhook.state)),
                ("Since", .instant(webhook.stateSince)),
                ("Why", .prose(webhook.reason)),
                ("Tried again", .instant(webhook.restUntil)),
                ("Position", .number(webhook.position)),
                ("Behind the feed", .number(webhook.behind)),
            ])
        waiting = AdminTable(
            "First events of the streams that wait, the oldest first",
            ["Position", "Event", "Customer", "Subscription", "Since", "Failed calls", "Again", "Last error"],
            empty: "No stream waits.", isStacked: true,
            events.map { one in
                [
                    .number(one.position), .text(one.kind),
                    .text(one.customer, link: one.customer.map { CustomerPage.path(of: $0, in: one.bundleID) }),
                    .text(one.originalTransactionID), .instant(one.since), .number(one.attempts), .instant(one.nextAt),
                    .prose(one.reason),
                ]
            })
    }
}

extension AdminTable.Cell {
    fileprivate static func webhookState(_ state: Webhook.State) -> AdminTable.Cell {
        AdminTable.Cell(text: state.rawValue, badge: state == .on ? "good" : state == .resting ? "wait" : "bad")
    }
}

extension AdminSite {
    /// `GET /admin/webhooks`: every webhook, how it is and how far it is.
    func webhooks(_: Request, _ context: AdminContext) async throws -> Response {
        let now = try await tracker.ledger.now()
        let table = AdminTable(
            "Webhooks", of: try await tracker.ledger.webhooks.all(),
            empty: "There is none. Add one with `perennial webhook add`.", isStacked: true,
            [
                ("Webhook", { .text("\($0.id)", link: WebhookPage.path(of: $0.id)) }),
                ("Sends to", { .text($0.shownURL) }), ("App", { .text($0.bundleID?.text ?? "every app") }),
                ("State", { .webhookState($0.state) }), ("Behind", { .number($0.behind) }),
                ("Waiting", { .number($0.waiting) }), ("Oldest", { .instant($0.waitingSince) }),
                ("To look at", { .prose($0.trouble(at: now)) }),
            ])
        return try context.page("Webhooks", "webhooks", ["webhooks": table])
    }

    func webhook(_: Request, _ context: AdminContext) async throws -> Response { try await webhookPage(context) }

    /// `POST /admin/webhooks/{id}`: what the form asks for, by the session's key.
    func changeWebhook(_: Request, _ context: AdminContext) async throws -> Response {
        let id: Int32 = try context.parameters.number("id", of: "webhook")
        guard let form = context.form, let action = WebhookPage.Action(rawValue: form["action"]) else {
            throw Problem(.invalid, "Go back and choose what to do; nothing was changed.")
        }
        let webhooks = tracker.ledger.acting(as: .key(context.session.keyID)).webhooks
        let notice: String
        switch action {
        case .retry:
            try await webhooks.retry(id)
            notice =
                try await webhooks.webhook(id).state == .off
                ? "It is off, so nothing is sent; turn it on with `perennial webhook set \(id) --on`."
                : "What waits is due now; load the page again to see what came of it."
        case .skip:
            guard form["confirmed"] == "yes", let position = Int64.ofDigits(form["position"]) else {
                throw Problem(.invalid, "Go back, give the position and confirm the skip; nothing was changed.")
            }
            try await webhooks.skip(position, of: id, because: form["reason"])
            notice = "The event at position \(position) is skipped."
        case .test: notice = try await tracker.testWebhook(id).sentence
        }
        return try await webhookPage(context, notice: notice)
    }

    private func webhookPage(_ context: AdminContext, notice: String? = nil) async throws -> Response {
        let id: Int32 = try context.parameters.number("id", of: "webhook")
        let content = WebhookPage(
            try await tracker.ledger.webhooks.webhook(id), waiting: try await tracker.ledger.webhooks.waiting(for: id),
            formToken: context.session.formToken)
        return try context.page("Webhook \(id)", "webhook", content, notice: notice)
    }
}
