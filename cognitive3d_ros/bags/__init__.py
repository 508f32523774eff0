"""The offline door: recordings made by ROS, read without it, through the same recorder as the node."""

from cognitive3d_ros.bags.reader import Bag, BagFacts, BagMessage, open_bag

__all__ = ['Bag', 'BagFacts', 'BagMessage', 'open_bag']
