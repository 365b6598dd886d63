/// A first-in, first-out queue that does not move the remaining elements.
package struct Fifo<Element> {
    private var elements: [Element?] = []
    private var head = 0

    /// Creates an empty queue.
    package init() {}

    package var isEmpty: Bool { head == elements.count }
    package var count: Int { elements.count - head }
    package var first: Element? { isEmpty ? nil : elements[head] }
    /// All elements, oldest first.
    var all: [Element] { elements[head...].compactMap { $0 } }

    /// Returns at most `most` elements, oldest first.
    package func prefix(_ most: Int) -> [Element] { elements[head...].prefix(most).compactMap { $0 } }

    package mutating func append(_ element: Element) { elements.append(element) }

    package mutating func removeFirst() {
        guard !isEmpty else { return }
        elements[head] = nil
        head += 1
        if head == elements.count || (head >= 1_024 && head * 2 > elements.count) {
            elements.removeFirst(head)
            head = 0
        }
    }
}

extension Fifo: Sendable where Element: Sendable {}
