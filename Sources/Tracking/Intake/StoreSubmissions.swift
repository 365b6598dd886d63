import AppStore
package import Ledger
import Subscriptions

extension Tracker {
    /// Stores receipts for the schedule to check; an invalid one never affects the others.
    ///
    /// With `part` the ledger records in the same transaction how far the import of a file is, and how many of these
    /// submissions were invalid.
    package func store(
        _ submissions: [Submission], completing part: ImportedPart? = nil
    ) async throws -> [Result<StoredUpload, any Error>] {
        let apps = Dictionary(uniqueKeysWithValues: try await ledger.apps.all().map { ($0.bundleID, $0) })
        var uploads: [Result<Upload, any Error>] = []
        uploads.reserveCapacity(submissions.count)
        for submission in submissions { uploads.append(await upload(of: submission, among: apps)) }
        for (bundleID, refused) in Dictionary(grouping: zip(submissions, uploads), by: { $0.0.bundleID }) {
            guard let app = apps[bundleID] else { continue }
            await count(refused.compactMap { $0.1.refusal }, of: app)
        }
        let good = uploads.compactMap { try? $0.get() }
        var part = part
        part?.badLines += Int64(uploads.count - good.count)
        var stored = try await storeEach(good, completing: part).makeIterator()
        return uploads.map { upload in
            upload.flatMap { _ in
                stored.next() ?? .failure(LedgerError(.mismatch, "The receipt was not stored."))
            }
        }
    }

    private func upload(of submission: Submission, among apps: [BundleID: App]) async -> Result<Upload, any Error> {
        guard let app = apps[submission.bundleID] else {
            return .failure(
                LedgerError(
                    .notFound, "No app has the bundle id \(submission.bundleID); add it with `perennial app add`."))
        }
        do {
            return .success(try await Upload(submission, app: app, verifier: signedTexts))
        } catch {
            return .failure(error)
        }
    }

    /// Counts the apps that refused receipts name instead of `app`, so that a mistyped bundle id is seen.
    func count(_ refusals: [UploadRefusal], of app: App) async {
        let named = Dictionary(refusals.compactMap(\.otherApp).map { ($0, 1) }, uniquingKeysWith: +)
        guard !named.isEmpty else { return }
        metrics.refused(named.values.reduce(0, +), of: app.bundleID)
        await attempt("count refused bundle ids") { try await ledger.intake.countRefused(named, of: app) }
    }

    /// Stores all uploads at once, or one by one when the database refuses a value of one of them.
    private func storeEach(
        _ uploads: [Upload], completing part: ImportedPart?
    ) async throws -> [Result<StoredUpload, any Error>] {
        do {
            return try await ledger.intake.store(uploads, completing: part).map { .success($0) }
        } catch let error where error.storageFailure?.isAboutAValue == true {
            var stored: [Result<StoredUpload, any Error>] = []
            for upload in uploads {
                do {
                    stored += try await ledger.intake.store([upload]).map { .success($0) }
                } catch let error where error.storageFailure?.isAboutAValue == true {
                    stored.append(.failure(error))
                }
            }
            // The next run simply finds again the uploads that are stored before their part is marked.
            var part = part
            part?.badLines += Int64(stored.count { if case .failure = $0 { true } else { false } })
            _ = try await ledger.intake.store([], completing: part)
            return stored
        }
    }
}

extension Result<Upload, any Error> {
    /// Why the upload is refused; nil where it is not, or for another reason.
    fileprivate var refusal: UploadRefusal? {
        switch self {
        case .success: nil
        case .failure(let error): error as? UploadRefusal
        }
    }
}
