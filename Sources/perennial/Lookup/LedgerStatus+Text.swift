import Ledger
import Tracking

extension LedgerStatus {
    /// The status for people.
    var text: String {
        var totals = Listing(columns: ["receipts", "verified", "unverified", "rejected", "subscriptions", "workers"])
        totals.rows = [[receipts, verified, unverified, rejected, subscriptions, workers].map { .integer($0) }]
        var parts = [totals.table, lanes.isEmpty ? "Nothing is scheduled." : laneListing.table]
        for pause in pauses {
            parts.append("Paused: \(pause.bundleID) until \(pause.pause.until.iso8601): \(pause.pause.reason)")
        }
        parts.append(
            """
            Feed: position \(feedPosition), \(unsequencedEvents) events without a position yet
            Last verified answer: \(lastCheckedAt?.iso8601 ?? "none yet")
            """)
        return parts.joined(separator: "\n\n")
    }

    /// The status as a stable object.
    var json: JSONValue {
        [
            "lanes": laneListing.json,
            "pauses": .array(
                pauses.map { pause in
                    [
                        "app": .string(pause.bundleID.text), "until": .string(pause.pause.until.iso8601),
                        "reason": .string(pause.pause.reason),
                    ]
                }),
            "receipts": .integer(receipts), "verified": .integer(verified), "unverified": .integer(unverified),
            "rejected": .integer(rejected), "subscriptions": .integer(subscriptions), "workers": .integer(workers),
            "feed": [
                "id": .string(feedID), "position": .integer(feedPosition), "unsequenced": .integer(unsequencedEvents),
            ],
            "last_checked_at": .optional(lastCheckedAt),
        ]
    }

    private var laneListing: Listing {
        var listing = Listing(columns: ["app", "lane", "receipts", "due", "overdue", "in_flight", "next_due_at"])
        listing.rows = lanes.map { lane in
            [
                .string(lane.bundleID.text), .string("\(lane.lane)"), .integer(lane.receipts), .integer(lane.due),
                .integer(lane.overdue), .integer(lane.inFlight), .optional(lane.nextDueAt),
            ]
        }
        return listing
    }
}
