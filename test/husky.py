"""The odometry of the Husky recording, and the data format's conversions written out by hand."""

import numpy as np
from rosbags.highlevel import AnyReader

ODOMETRY = '/husky_velocity_controller/odom'
_S = np.sqrt(0.5)


class Odometry:
    """Where the Husky was: stamps in seconds, positions (N, 3) in metres, rotations (N, 4) x y z w."""

    def __init__(self, bag):
        rows = []
        with AnyReader([bag]) as reader:
            connections = [c for c in reader.connections if c.topic == ODOMETRY]
            for connection, _, raw in reader.messages(connections=connections):
                message = reader.deserialize(raw, connection.msgtype)
                stamp, pose = message.header.stamp, message.pose.pose
                p, q = pose.position, pose.orientation
                rows.append((stamp.sec + stamp.nanosec * 1e-9, p.x, p.y, p.z, q.x, q.y, q.z, q.w))
        table = np.array(rows)
        self.times, self.positions, self.rotations = table[:, 0], table[:, 1:4], table[:, 4:]

    def covers(self, times):
        """Say for which times there is odometry on both sides, close by."""
        after = np.clip(np.searchsorted(self.times, times), 1, len(self.times) - 1)
        inside = (times >= self.times[0]) & (times <= self.times[-1])
        return inside & (self.times[after] - self.times[after - 1] < 0.3)

    def at(self, times):
        """Return positions and rotations at times: linear, and slerp, as tf interpolates."""
        after = np.clip(np.searchsorted(self.times, times), 1, len(self.times) - 1)
        before = after - 1
        ratio = (times - self.times[before]) / (self.times[after] - self.times[before])
        ratio = ratio[:, None]
        positions = self.positions[before] * (1 - ratio) + self.positions[after] * ratio
        a, b = self.rotations[before], self.rotations[after]
        a = a / np.linalg.norm(a, axis=1, keepdims=True)
        b = b / np.linalg.norm(b, axis=1, keepdims=True)
        cosine = np.sum(a * b, axis=1, keepdims=True)
        b = np.where(cosine < 0, -b, b)
        angle = np.arccos(np.clip(np.abs(cosine), 0, 1))
        small = angle < 1e-9
        sine = np.where(small, 1, np.sin(angle))
        first = np.where(small, 1 - ratio, np.sin((1 - ratio) * angle) / sine)
        second = np.where(small, ratio, np.sin(ratio * angle) / sine)
        return positions, a * first + b * second

    def errors(self, times, positions):
        """Return how far positions in ROS axes are from where the robot was at these times, in metres."""
        return np.linalg.norm(self.at(times)[0] - positions, axis=1)

    def speeds(self, times):
        """Return the speed around these times, in metres a second: the highest within 0.2 s."""
        steps = np.linalg.norm(np.diff(self.positions, axis=0), axis=1) / np.diff(self.times)
        near = np.clip(np.searchsorted(self.times, times), 3, len(steps) - 3)
        return np.max([steps[near + shift] for shift in (-3, -2, -1, 0, 1, 2)], axis=0)

    @staticmethod
    def sync_offsets(events):
        """Return for each sync event the time that was being played less its wire time, in seconds."""
        return np.array([event['properties']['played'] - event['time'] for event in events])


def hand_converted(convention, positions, rotations):
    """Convert positions and pose rotations as the data format's table prints it."""
    x, y, z = positions.T
    qx, qy, qz, qw = (rotations / np.linalg.norm(rotations, axis=1, keepdims=True)).T
    if convention == 'unity':
        return np.stack((-y, z, x), 1), np.stack((-qy, qz, qx, -qw), 1)
    if convention == 'gltf_authored':
        turned = (_S * (qx + qy), -_S * (qz + qw), _S * (qy - qx), _S * (qw - qz))
        return np.stack((-x, z, -y), 1), np.stack(turned, 1)
    assert convention == 'rep103'
    return positions, np.stack((qx, qy, qz, qw), 1)
