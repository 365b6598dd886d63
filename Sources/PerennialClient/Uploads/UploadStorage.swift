public import Foundation

/// Where a queue keeps its uploads: a struct of closures, so that an app may keep them in its own database.
///
/// One queue uses a storage at a time. What `save` stored is there after the process was killed.
public struct UploadStorage: Sendable {
    /// One stored upload.
    public struct Entry: Sendable, Hashable {
        /// Its name.
        public let id: String
        /// Its bytes, as they were saved.
        public let bytes: Data

        /// Makes an entry.
        public init(id: String, bytes: Data) {
            self.id = id
            self.bytes = bytes
        }
    }

    /// Everything that is stored, in any order.
    public var load: @Sendable () async throws -> [Entry]
    /// Stores an entry: all of it or nothing, and durably when it returns. It replaces one of the same name.
    public var save: @Sendable (Entry) async throws -> Void
    /// Removes an entry; one that is not there is no error.
    public var remove: @Sendable (_ id: String) async throws -> Void
    /// Puts an entry that cannot be read where `load` finds it no more and a person does.
    public var setAside: @Sendable (_ id: String) async throws -> Void

    /// Makes a storage.
    public init(
        load: @escaping @Sendable () async throws -> [Entry],
        save: @escaping @Sendable (Entry) async throws -> Void,
        remove: @escaping @Sendable (_ id: String) async throws -> Void,
        setAside: @escaping @Sendable (_ id: String) async throws -> Void
    ) {
        self.load = load
        self.save = save
        self.remove = remove
        self.setAside = setAside
    }
}
