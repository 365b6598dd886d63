/// Runs writes that arrive together as one group, so that they share a statement, a round trip and a commit. Placing
/// orders does so: many customers pay at the same time, each with one row.
///
/// A request that arrives alone runs at once. While as many groups run as may, requests wait and form the next group.
package actor WriteGroups<Request: Sendable, Answer: Sendable> {
    /// Does the work of a group; returns one answer for each request, in their order.
    package typealias Work = @Sendable ([Request]) async throws -> [Answer]

    private struct Call: Sendable {
        let request: Request
        let answer: CheckedContinuation<Answer, any Error>
    }

    private let requestsMax: Int
    private let groupsMax: Int
    private var groups = 0
    private var waiting: WaitQueue<Call>

    /// Creates groups of at most `requestsMax` requests, of which `groupsMax` run; at most `waitingMax` requests wait.
    package init(requestsMax: Int, groupsMax: Int, waitingMax: Int) {
        self.requestsMax = requestsMax
        self.groupsMax = groupsMax
        waiting = WaitQueue(limit: waitingMax)
    }

    /// Returns the answer to a request. A group runs the `work` of one of its requests, so it must do the same for all.
    ///
    /// A caller that is cancelled still gets the answer, because others share its group. When the server refuses a
    /// group, each of its requests runs alone, and fails alone. A failure of the connection is one of the whole group.
    /// - Throws: `.queueFull`; the error of `work` for this request.
    package func answer(_ request: Request, by work: @escaping Work) async throws -> Answer {
        try await withCheckedThrowingContinuation { continuation in
            do {
                _ = try waiting.join(Call(request: request, answer: continuation), at: .now)
                startGroup(work)
            } catch {
                continuation.resume(throwing: error)
            }
        }
    }

    /// Runs the requests that wait as a group, unless enough groups run; after it the next one starts.
    private func startGroup(_ work: @escaping Work) {
        guard groups < groupsMax, waiting.count > 0 else { return }
        groups += 1
        Task {
            // Callers that are about to ask join this group.
            await Task.yield()
            let group = waiting.take(atMost: requestsMax).map(\.call)
            if !group.isEmpty { await Self.run(group, work) }
            groups -= 1
            startGroup(work)
        }
    }

    /// Runs a group and answers its callers; where the error may be that of one request, each runs alone.
    private static func run(_ group: [Call], _ work: Work) async {
        do {
            let answers = try await work(group.map(\.request))
            for (call, answer) in zip(group, answers) { call.answer.resume(returning: answer) }
        } catch  where group.count > 1 && mayConcernOne(error) {
            for call in group { await run([call], work) }
        } catch {
            for call in group { call.answer.resume(throwing: error) }
        }
    }

    /// Returns whether the server refused the group, perhaps for one request; a failed connection concerns them all.
    private static func mayConcernOne(_ error: any Error) -> Bool {
        guard let error = error as? DatabaseError else { return true }
        return error.sqlState != nil
    }
}
